import { budgetLater, msToSend } from '../budget-now.ts'
import { requestsUntilEnd } from '../estimate.ts'
import { type JobProgress, msPerAnswer, pagesLeft } from './job-progress.ts'

/**
 * Milliseconds until a job has read its list, or null if unknown: no less than its answers, the present wait, and the requests of
 * all lists with the same budget take.
 */
export function timeLeft(job: JobProgress, all: readonly JobProgress[], now: number): number | null {
  const alone = timeAlone(job, now)
  return alone === null ? null : Math.max(alone, timeByBudget(job, all, now))
}

function timeAlone(job: JobProgress, now: number): number | null {
  const pages = pagesLeft(job)
  const each = msPerAnswer(job)
  if (pages === null || pages === 0 || each === null) return null
  // A single answer may have been slow by chance.
  const isLimited = job.budgetNow !== null && msToSend(pages, job.budgetNow) > 0
  const bySpeed = job.answers < 2 && isLimited ? 0 : pages * each
  return Math.max(bySpeed, job.wait ? job.wait.until - now : 0)
}

function timeByBudget(job: JobProgress, all: readonly JobProgress[], now: number): number {
  if (job.budgetNow === null) return 0
  const others = othersOf(job, all)
  // The latest answer of any of them knows the budget best.
  const [latest = job] = [job, ...others]
    .filter((one) => one.budgetNow !== null)
    .toSorted((one, other) => (other.markedAt ?? 0) - (one.markedAt ?? 0))
  const budget = budgetLater(latest.budgetNow ?? job.budgetNow, now - (latest.markedAt ?? now))
  return msToSend(requestsUntilEnd(pagesLeft(job) ?? 0, others.map(pagesLeft)), budget)
}

/** The other jobs that send requests with the same budget. */
export function othersOf(job: JobProgress, all: readonly JobProgress[]): JobProgress[] {
  return all.filter((other) => other !== job && other.budget === job.budget && other.state !== 'busy')
}

/** Until the last of the jobs is done; null while none has an answer. Those without one are taken to be no longer. */
export function timeLeftOfAll(all: readonly JobProgress[], now: number): number | null {
  const known = all.filter((job) => timeAlone(job, now) !== null)
  if (known.length === 0) return null
  // Of each budget the longest list alone: to ask of each of thousands takes seconds.
  const limited = known.filter(({ budgetNow }) => budgetNow !== null)
  const longest = [...Map.groupBy(limited, ({ budget }) => budget).values()].map((jobs) =>
    jobs.reduce((one, other) => ((pagesLeft(other) ?? 0) > (pagesLeft(one) ?? 0) ? other : one)),
  )
  const byBudget = Map.groupBy(all, ({ budget }) => budget)
  return Math.max(
    ...known.map((job) => timeAlone(job, now) ?? 0),
    ...longest.map((job) => timeByBudget(job, byBudget.get(job.budget) ?? [], now)),
  )
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
