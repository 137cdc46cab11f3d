import { grouped, inWords } from '../../text.ts'

/** The progress of a running job. Times are epoch milliseconds. */
export interface JobProgress {
  label: string
  startedAt: number
  /** Pages read by this run. */
  pages: number
  /** The page read last (0: none yet), and the last page of the list, if known. */
  page: number
  lastPage: number | null
  rows: number
  pass: number
  /** Requests a minute that the rate limit leaves us, if known. */
  allowedPerMinute: number | null
  wait: { reason: string; until: number } | null
}

export function newProgress(label: string, startedAt: number): JobProgress {
  const unknown = { lastPage: null, allowedPerMinute: null, wait: null }
  return { label, startedAt, pages: 0, page: 0, rows: 0, pass: 1, ...unknown }
}

/** One line a job, on at most half of the screen: jobs that have read a page first, then how many more there are. */
export function progressLines(jobs: readonly JobProgress[], height: number, now: number): string[] {
  const room = Math.max(Math.floor(height / 2), 1)
  const sorted = jobs.toSorted((a, b) => Number(b.page > 0) - Number(a.page > 0))
  const lines = sorted.slice(0, room).map((job) => progressLine(job, now))
  return jobs.length > room ? [...lines, `and ${grouped(jobs.length - room)} more`] : lines
}

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

/** By the speed so far, but not less than the rate limit or the present wait takes. */
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
