import { grouped, inWords } from '../text.ts'

/** What is known of a job while it runs. Times are epoch milliseconds. */
export interface JobProgress {
  label: string
  startedAt: number
  /** Pages read by this run. */
  pages: number
  /** The page that was read last, and the list's last one, where it is told. */
  page: number
  lastPage: number | null
  rows: number
  pass: number
  /** Requests a minute that the rate limit leaves us, as far as it is known. */
  allowedPerMinute: number | null
  wait: { reason: string; until: number } | null
}

/** As many lines as leave room for others on a screen of this height, those at work first, and how many more there are. */
export function progressLines(jobs: readonly JobProgress[], height: number, now: number): string[] {
  const room = Math.max(Math.floor(height / 2), 1)
  const sorted = jobs.toSorted((a, b) => Number(b.page > 0) - Number(a.page > 0))
  const lines = sorted.slice(0, room).map((job) => progressLine(job, now))
  return jobs.length > room ? [...lines, `and ${grouped(jobs.length - room)} more`] : lines
}

/** The line that shows a job's progress: page of pages, what it waits for, rows, rate and time left. */
function progressLine(job: JobProgress, now: number): string {
  const parts = [
    job.label.padEnd(20),
    pageOfPages(job),
    waiting(job, now),
    `${grouped(job.rows)} rows`,
    rate(job, now),
    timeLeft(job, now),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function pageOfPages({ page, lastPage, pass }: JobProgress): string {
  const again = pass > 1 ? ` (pass ${pass})` : ''
  if (page === 0) return 'first page...'
  if (lastPage === null || lastPage < page) return `page ${grouped(page)}${again}`
  return `page ${grouped(page)} of ${grouped(lastPage)} ${Math.floor((page / lastPage) * 100)} %${again}`
}

function waiting({ wait }: JobProgress, now: number): string {
  return wait && wait.until > now ? `waiting ${inWords(wait.until - now)}: ${wait.reason}` : ''
}

function rate(job: JobProgress, now: number): string {
  const msPerPage = speed(job, now)
  return msPerPage === null ? '' : `${grouped(Math.round(60_000 / msPerPage))} pages a minute`
}

/** By the speed so far; never less than what the rate limit allows, or than the wait that is on. */
function timeLeft(job: JobProgress, now: number): string {
  const { page, lastPage, allowedPerMinute, wait } = job
  const msPerPage = speed(job, now)
  if (msPerPage === null || lastPage === null || lastPage <= page) return ''
  const pages = lastPage - page
  const byLimit = allowedPerMinute === null ? 0 : (pages / allowedPerMinute) * 60_000
  const waitMs = wait ? Math.max(wait.until - now, 0) : 0
  return `${inWords(Math.max(pages * msPerPage, byLimit, waitMs))} left`
}

function speed({ pages, startedAt }: JobProgress, now: number): number | null {
  return pages < 2 || now <= startedAt ? null : (now - startedAt) / pages
}
