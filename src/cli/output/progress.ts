import type { RateRules } from '../../api/rate/budget.ts'
import { allowedPerMinute, type BudgetNow, budgetNow, msToSend } from '../../api/rate/decision.ts'
import { MINUTE_MS } from '../../api/rate/window.ts'
import type { JobEvent } from '../../sync/job.ts'
import { ownerName } from '../../sync/owner-work.ts'
import type { Page } from '../../sync/types.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'

/** The progress of a job. Times are epoch milliseconds. */
export type JobProgress = ReturnType<typeof newProgress>

/** @param budget Jobs with the same budget share a rate limit. */
export function newProgress(label: string, budget: string) {
  return {
    label: printable(label, 80),
    budget,
    /** `queued`: no walk has begun. `busy`: another process has the job. */
    state: 'queued' as 'queued' | 'busy' | 'walking',
    /** Answers of this run. */
    answers: 0,
    requests: 0,
    /** When those of the last minute left. */
    sentAt: [] as readonly number[],
    inFlight: 0,
    /** When the last answer was complete; before the first, when its request left. */
    markedAt: null as number | null,
    /** Waits since then that are over. */
    waitedMs: 0,
    /** How long the last answers took until their pages were written, without waits. */
    spentMs: [] as number[],
    wait: null as { reason: string; since: number; until: number } | null,
    /** Which process has the job, and about how long it will still take, in milliseconds; null: not known. */
    owner: null as string | null,
    /** The page read last (0: none yet), the furthest of this pass, and the last of the list, if known. */
    page: 0,
    furthest: 0,
    lastPage: null as number | null,
    pass: 1,
    /** How much of the list is read; it never falls. Null: unknown. */
    percent: null as number | null,
    rows: 0,
    /** Requests a minute that the budget leaves us; null if nothing is known to limit them. */
    allowedPerMinute: null as number | null,
    /** What the budget lets us send as of the last answer; null if nothing is known to limit it. */
    budgetNow: null as { at: number; known: BudgetNow } | null,
  }
}

/** Notes what happened to a job. */
export function noteEvent(job: JobProgress, event: JobEvent | VerifyEvent, now: number): void {
  if (event.kind === 'busy') {
    Object.assign(job, { state: 'busy', owner: printable(ownerName(event.owner, event.work), 60) })
  } else if (event.kind === 'start') {
    const { checkpoint, rowsSeen: rows } = event.walk
    const furthest = checkpoint.nextPage === null ? 0 : checkpoint.nextPage - 1
    Object.assign(job, { state: 'walking', furthest, pass: checkpoint.pass, rows })
  } else if (event.kind === 'request') {
    job.markedAt ??= now
    endWait(job, now)
    job.wait = null
    job.requests++
    job.sentAt = [...ofLastMinute(job.sentAt, now), now]
    job.inFlight++
  } else if (event.kind === 'retry') noteWait(job, event.reason, now + event.delayMs, now)
  else if (event.kind === 'wait') noteWait(job, event.reason, event.until, now)
  else if (event.kind === 'page') notePage(job, event.page, event.itemsInWalk, now)
  else if (event.kind === 'pass') Object.assign(job, { pass: event.pass, furthest: 0, page: 0 })
}

function ofLastMinute(times: readonly number[], now: number): number[] {
  return times.filter((time) => time > now - MINUTE_MS)
}

/** Notes what is known of the budget after an answer. */
export function noteBudget(
  job: JobProgress,
  all: readonly JobProgress[],
  page: Pick<Page, 'announcedLimit' | 'announcedLeft'>,
  rules: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
  now: number,
): void {
  const sent = ofLastMinute(
    [job, ...othersOf(job, all)].flatMap(({ sentAt }) => sentAt),
    now,
  )
  const known = budgetNow(page, rules, sent.length)
  job.budgetNow = known && { at: now, known }
  job.allowedPerMinute = allowedPerMinute(page.announcedLimit, rules)
}

function noteWait(job: JobProgress, reason: string, until: number, now: number): void {
  job.wait = { reason, until, since: job.wait?.since ?? now }
  job.inFlight = 0
}

function endWait(job: JobProgress, now: number): void {
  if (job.wait) job.waitedMs += Math.max(now - job.wait.since, 0)
}

/** A page is read and written. The next request may have left before, or may be waiting. */
function notePage(job: JobProgress, { number, lastPage }: Page, rows: number, now: number): void {
  endWait(job, now)
  if (job.wait) job.wait.since = now
  const spent = Math.max(now - (job.markedAt ?? now) - job.waitedMs, 0)
  job.spentMs = [...job.spentMs, spent].slice(-KEPT_ANSWERS)
  job.answers++
  job.inFlight = Math.max(job.inFlight - 1, 0)
  Object.assign(job, { markedAt: now, waitedMs: 0, page: number, lastPage, rows })
  job.furthest = Math.max(job.furthest, number)
  // A list is not done before its walk ends, and earlier pages may be asked again.
  if (lastPage !== null)
    job.percent = Math.max(job.percent ?? 0, Math.min(percentOf(job.furthest, lastPage), 99))
}

export function percentOf(pages: number, all: number): number {
  return Math.floor((pages / Math.max(all, 1)) * 100)
}

/** Pages that the job still has to read; null if unknown. Earlier pages that are asked again come on top. */
function pagesLeft({ answers, furthest, lastPage }: JobProgress): number | null {
  return answers === 0 || lastPage === null ? null : Math.max(lastPage - furthest, 0)
}

/** A few answers say how fast a server is; a single one may have been slow. */
export const ENOUGH_ANSWERS = 3

/** Answers whose time is kept: a server's speed may change. */
const KEPT_ANSWERS = 15

/** How long a usual page takes, without waits; null before a few came. A single one may be slow, or wait for somebody's lock on the mirror. */
export function msPerPage({ spentMs }: JobProgress): number | null {
  if (spentMs.length < ENOUGH_ANSWERS) return null
  return spentMs.toSorted((one, other) => one - other)[Math.floor((spentMs.length - 1) / 2)] ?? null
}

/**
 * `4,000 pages, about 66 minutes at 60 a minute`, and the same in milliseconds: by the rate limit as it is now (what a fresh minute
 * still allows leaves at once), or by the server's speed where that takes longer. Null as long as neither is known.
 */
export function estimate(
  job: JobProgress,
  all: readonly JobProgress[],
  now: number,
): { ms: number; by: 'budget' | 'speed'; text: string } | null {
  const pages = pagesLeft(job)
  const each = msPerPage(job)
  const { allowedPerMinute: allowed } = job
  if (pages === null || pages === 0 || (each === null && allowed === null)) return null
  const others = othersOf(job, all)
  // The lists of a budget take turns, so a longer list sends no more than this one meanwhile. One without an answer is assumed to be as long.
  const requests = others.reduce((sum, other) => sum + Math.min(pagesLeft(other) ?? pages, pages), pages)
  // The latest answer of all these lists shows the budget best.
  const [latest = null] = [job, ...others]
    .flatMap(({ budgetNow: one }) => one ?? [])
    .toSorted((one, other) => other.at - one.at)
  const byBudget = latest ? msToSend(requests, latest.known, now - latest.at) : 0
  const bySpeed = pages * (each ?? 0)
  if (allowed !== null && byBudget > bySpeed) {
    const shared = others.length === 0 ? '' : `, shared by ${others.length + 1} lists`
    const text = `${counted(pages, 'page')}, about ${inWords(byBudget)} at ${grouped(allowed)} a minute${shared}`
    return { ms: byBudget, by: 'budget', text }
  }
  if (each === null) return null
  return { ms: bySpeed, by: 'speed', text: `${counted(pages, 'page')}, about ${inWords(bySpeed)}` }
}

/** The other jobs that send requests with the same budget. */
function othersOf(job: JobProgress, all: readonly JobProgress[]): JobProgress[] {
  return all.filter((other) => other !== job && other.budget === job.budget && other.state !== 'busy')
}

/** Milliseconds until a job has read its list, or null if unknown. */
export function timeLeft(job: JobProgress, all: readonly JobProgress[], now: number): number | null {
  const known = estimate(job, all, now)
  return known && Math.max(known.ms, (job.wait?.until ?? now) - now)
}

/** Milliseconds until the last of the jobs is done; null while nothing is known. Jobs without an answer are assumed to take no longer. */
export function timeLeftOfAll(all: readonly JobProgress[], now: number): number | null {
  // Only for the longest list of each budget: for each of thousands it would take seconds.
  const longest = [...Map.groupBy(all, ({ budget }) => budget).values()].flatMap((jobs) => {
    const job = jobs.reduce((one, other) => ((pagesLeft(other) ?? 0) > (pagesLeft(one) ?? 0) ? other : one))
    return timeLeft(job, jobs, now) ?? []
  })
  return longest.length === 0 ? null : Math.max(...longest)
}

/** Pages read, and all pages of the lists; null while the length of a list is unknown. */
export function pagesOfAll(all: readonly JobProgress[]): { read: number; known: number | null } {
  const read = all.reduce((sum, job) => sum + job.furthest, 0)
  if (all.some(({ lastPage }) => lastPage === null)) return { read, known: null }
  return { read, known: all.reduce((sum, job) => sum + Math.max(job.lastPage ?? 0, job.furthest), 0) }
}
