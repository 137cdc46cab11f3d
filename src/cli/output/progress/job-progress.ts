import { printable } from '../../../text.ts'
import { type BudgetNow, budgetLater, msToSend, requestsUntilEnd } from '../estimate.ts'

/** The progress of a job. Times are epoch milliseconds. */
export interface JobProgress {
  label: string
  /** Jobs with the same budget share a rate limit. */
  budget: string
  /** `queued`: no walk has begun. `busy`: another process has the job. */
  state: 'queued' | 'busy' | 'walking'
  /** Answers of this run. */
  answers: number
  requests: number
  inFlight: number
  /** When the last answer was complete; before the first, when its request left. */
  markedAt: number | null
  /** What the last answers took until their pages were written, without waits. */
  spentMs: number[]
  /** Waits since `markedAt`. */
  waitedMs: number
  wait: Wait | null
  /** Who has the job, and how long that one still takes about (milliseconds), if it is known. */
  owner: { name: string; left: number | null } | null
  /** The page read last (0: none yet), the furthest of this pass, and the last of the list, if known. */
  page: number
  furthest: number
  lastPage: number | null
  pass: number
  /** Of the list; it never falls. Null: unknown. */
  percent: number | null
  rows: number
  /** Requests a minute that the budget leaves us, if known. */
  allowedPerMinute: number | null
  /** The same as of `markedAt`. */
  budgetNow: BudgetNow | null
}

interface Wait {
  reason: string
  since: number
  until: number
}

export function newProgress(label: string, budget: string): JobProgress {
  return {
    label: printable(label, 80),
    budget,
    state: 'queued',
    answers: 0,
    requests: 0,
    inFlight: 0,
    markedAt: null,
    spentMs: [],
    waitedMs: 0,
    wait: null,
    owner: null,
    page: 0,
    furthest: 0,
    lastPage: null,
    pass: 1,
    percent: null,
    rows: 0,
    allowedPerMinute: null,
    budgetNow: null,
  }
}

/** Another process has the job. */
export function noteBusy(job: JobProgress, name: string, left: number | null): void {
  job.state = 'busy'
  job.owner = { name: printable(name, 60), left }
}

/** A walk begins, or goes on at this page. */
export function noteStart(job: JobProgress, nextPage: number | null, pass: number, rows: number): void {
  job.state = 'walking'
  job.furthest = nextPage === null ? 0 : nextPage - 1
  Object.assign(job, { pass, rows })
}

/** A request leaves, which ends a wait. */
export function noteRequest(job: JobProgress, now: number): void {
  job.markedAt ??= now
  if (job.wait) job.waitedMs += Math.max(now - job.wait.since, 0)
  job.wait = null
  job.requests++
  job.inFlight++
}

export function noteWait(job: JobProgress, reason: string, until: number, now: number): void {
  job.wait = { reason, until, since: job.wait?.since ?? now }
  job.inFlight = 0
}

/** A page is read and kept. The next request may have left before, or wait already. */
export function notePage(
  job: JobProgress,
  page: { number: number; lastPage: number | null },
  rows: number,
  now: number,
): void {
  if (job.wait) {
    job.waitedMs += Math.max(now - job.wait.since, 0)
    job.wait.since = now
  }
  const spent = Math.max(now - (job.markedAt ?? now) - job.waitedMs, 0)
  job.answers++
  job.inFlight = Math.max(job.inFlight - 1, 0)
  job.spentMs = [...job.spentMs, spent].slice(-KEPT_ANSWERS)
  Object.assign(job, { markedAt: now, waitedMs: 0, rows, page: page.number, lastPage: page.lastPage })
  job.furthest = Math.max(job.furthest, page.number)
  job.percent = percentOf(job)
}

export function notePass(job: JobProgress, pass: number): void {
  Object.assign(job, { pass, furthest: 0, page: 0 })
}

/** A list is not done before its walk ends, and earlier pages may be asked again. */
function percentOf({ furthest, lastPage, percent }: JobProgress): number | null {
  if (lastPage === null) return percent
  return Math.max(percent ?? 0, Math.min(Math.floor((furthest / Math.max(lastPage, 1)) * 100), 99))
}

/** Pages that the job still has to read; null if unknown. Earlier pages that are asked again come on top. */
export function pagesLeft({ answers, furthest, lastPage }: JobProgress): number | null {
  if (answers === 0 || lastPage === null) return null
  return Math.max(lastPage - furthest, 0)
}

/** Answers whose time is kept: a server's speed may change. */
const KEPT_ANSWERS = 15

/**
 * What an answer takes, without waits. Most of them decide: some may be slow, and some pages wait for somebody's lock on the mirror.
 * Null before the second.
 */
export function msPerAnswer({ spentMs }: JobProgress): number | null {
  if (spentMs.length < 2) return null
  return spentMs.toSorted((one, other) => one - other)[Math.floor((spentMs.length - 1) / 2)] ?? null
}

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
  if (pages === null || pages === 0) return null
  const isLimited = job.budgetNow !== null && msToSend(pages, job.budgetNow) > 0
  if (each === null && !isLimited) return null
  return Math.max(pages * (each ?? 0), job.wait ? job.wait.until - now : 0)
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
