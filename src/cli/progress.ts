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
  wait: { reason: string; until: number } | null
}

/** The line that shows a job's progress: page of pages, rows, rate, time left, and what it waits for. */
export function progressLine(job: JobProgress, now: number): string {
  const parts = [
    job.label.padEnd(24),
    pageOfPages(job),
    `${grouped(job.rows)} rows`,
    rate(job, now),
    timeLeft(job, now),
    waiting(job, now),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function pageOfPages({ page, lastPage, pass }: JobProgress): string {
  const again = pass > 1 ? ` (pass ${pass})` : ''
  if (page === 0) return 'first page...'
  if (lastPage === null || lastPage < page) return `page ${grouped(page)}${again}`
  return `page ${grouped(page)} of ${grouped(lastPage)} ${Math.floor((page / lastPage) * 100)} %${again}`
}

function rate({ pages, startedAt }: JobProgress, now: number): string {
  const minutes = (now - startedAt) / 60_000
  return pages < 2 || minutes <= 0 ? '' : `${grouped(Math.round(pages / minutes))} pages a minute`
}

function timeLeft({ pages, page, lastPage, startedAt }: JobProgress, now: number): string {
  if (pages < 2 || lastPage === null || lastPage <= page) return ''
  return `${inWords(((lastPage - page) * (now - startedAt)) / pages)} left`
}

function waiting({ wait }: JobProgress, now: number): string {
  return wait && wait.until > now ? `waiting ${inWords(wait.until - now)}: ${wait.reason}` : ''
}
