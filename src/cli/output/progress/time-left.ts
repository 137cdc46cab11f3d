import { requestsUntilEnd } from '../estimate.ts'
import { type JobProgress, msPerAnswer, pagesLeft } from './job-progress.ts'

/**
 * Milliseconds until a job has read its list, or null if unknown: no less than its answers, the present wait, and the requests of
 * all lists with the same budget take.
 */
export function timeLeft(job: JobProgress, all: readonly JobProgress[], now: number): number | null {
  const pages = pagesLeft(job)
  const each = msPerAnswer(job)
  if (pages === null || pages === 0 || each === null) return null
  const others = othersOf(job, all).map(pagesLeft)
  const { allowedPerMinute: allowed, wait } = job
  const byBudget = allowed === null ? 0 : (requestsUntilEnd(pages, others) / allowed) * 60_000
  // A single answer may have been slow by chance.
  const bySpeed = job.answers < 2 && allowed !== null ? 0 : pages * each
  return Math.max(byBudget, bySpeed, wait ? wait.until - now : 0)
}

/** The other jobs that send requests with the same budget. */
export function othersOf(job: JobProgress, all: readonly JobProgress[]): JobProgress[] {
  return all.filter((other) => other !== job && other.budget === job.budget && other.state !== 'busy')
}

/** Until the last of the jobs is done; null while none has an answer. Those without one are taken to be no longer. */
export function timeLeftOfAll(all: readonly JobProgress[], now: number): number | null {
  const known = all.map((job) => timeLeft(job, all, now)).filter((ms) => ms !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** Pages read, and all that are known of; null while a job's list is unknown. */
export function pagesOfAll(all: readonly JobProgress[]): { read: number; known: number | null } {
  const read = all.reduce((sum, job) => sum + job.furthest, 0)
  const lengths = all.map(({ lastPage, furthest }) =>
    lastPage === null ? null : Math.max(lastPage, furthest),
  )
  const known = lengths.reduce((sum, pages) => (sum === null || pages === null ? null : sum + pages), 0)
  return { read, known }
}
