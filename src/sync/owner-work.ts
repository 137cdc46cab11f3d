import { grouped, inWords } from '../text.ts'
import type { Trigger } from './types.ts'

/** What the mirror knows of the work of another process on a job. Times are ISO 8601. */
export interface OwnerWork {
  /** Whether that process is a `start`. */
  isDaemon: boolean
  /** Whether it compares the list: then it has no run. */
  isVerify: boolean
  /** Null: none has begun. */
  run: RunningRun | null
}

/** A run that has not ended, and how far its walk is; of a refresh, only that it began. */
export interface RunningRun extends WalkPace {
  trigger: Trigger
  /** Null: all pages are read. */
  nextPage: number | null
}

/**
 * `the scheduler of process 4711`, `process 4711 on worker-2`. `name`: the name of its lock, from `newLockName` or `workerName`; or
 * `another process`, while its name is not written yet.
 */
export function ownerName(name: string, work: OwnerWork | null): string {
  const [, host, pid] = /^(?:(.*)-)?(\d+)-[0-9a-f]{12}$/.exec(name) ?? []
  const process = pid === undefined ? name : `process ${pid}${host ? ` on ${host}` : ''}`
  return work?.isDaemon ? `the scheduler of ${process}` : process
}

/** `is working on it (page 51, 25 %, about 12 minutes left)`. */
export function workText(work: OwnerWork | null, now: number): string {
  if (work?.isVerify) return 'is comparing it with the API (verify)'
  const run = work?.run
  if (!run) return 'is working on it (about to begin)'
  if (run.trigger === 'refresh') return 'is refreshing it'
  const left = leftOf(work, now)
  const percent = walkPercent(run.walkSeen, run.total)
  const parts = [
    ...(run.trigger === 'backfill' ? ['a backfill'] : []),
    run.nextPage === null ? 'all pages read' : `page ${grouped(run.nextPage)}`,
    ...(percent === null ? [] : [`${percent} %`]),
    ...(left === null ? [] : [`about ${inWords(left)} left`]),
  ]
  return `is working on it (${parts.join(', ')})`
}

/** About how long the owner's work will still take, in milliseconds; null: not known. */
export function leftOf(work: OwnerWork | null, now: number): number | null {
  return work?.run ? walkLeft(work.run, now) : null
}

/** What the speed of a running walk follows from. Times are ISO 8601. */
interface WalkPace {
  startedAt: string
  /** Of this run. */
  pages: number
  rowsSeen: number
  /** When the run had written the first third of its pages, and the second; null: not known. */
  thirdAt: string | null
  twoThirdsAt: string | null
  /** Its waits for the rate limit together. Milliseconds. */
  rateLimitWaitMs: number
  /** Of the walk: its distinct items in all its runs, and the length of the list. */
  walkSeen: number | null
  total: number | null
  updatedAt: string | null
  /** The latest end of a wait for its rate budget, which may be past. */
  waitingUntil: string | null
}

/** A run with fewer pages has no three parts to compare. */
const LEAST_PAGES = 3

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/** Milliseconds that a wait still lasts; 0: it is over, or there is none. `until`: ISO 8601; `now`: epoch milliseconds. */
export function waitLeft(until: string | null, now: number): number {
  const left = Date.parse(until ?? '') - now
  return left > 0 && left <= LONGEST_WAIT_MS ? left : 0
}

/**
 * Milliseconds that a walk still takes at the speed of its run so far, waits for the rate limit included, and not less than the
 * present wait; null if unknown. `now`: epoch milliseconds.
 */
export function walkLeft(pace: WalkPace, now: number): number | null {
  const { rowsSeen, walkSeen, total, waitingUntil } = pace
  if (walkSeen === null || total === null || rowsSeen === 0) return null
  const spent = spentMs(pace)
  if (spent === null) return null
  const toRead = (spent / rowsSeen) * Math.max(total - walkSeen, 0)
  return Math.round(Math.max(toRead, waitLeft(waitingUntil, now)))
}

/**
 * How long the pages of a run took. A wait for somebody's lock, or for a server that was away, says nothing of the pages to come. So the run is
 * cut into three parts, and the median of their times per page counts; waits for the rate limit are added.
 */
function spentMs(pace: WalkPace): number | null {
  const { pages, startedAt, thirdAt, twoThirdsAt, updatedAt, rateLimitWaitMs } = pace
  if (pages < LEAST_PAGES || thirdAt === null || twoThirdsAt === null || updatedAt === null) return null
  const third = Math.floor(pages / 3)
  const ends = [startedAt, thirdAt, twoThirdsAt, updatedAt].map((time) => Date.parse(time))
  const [, usual = 0] = [pages - 2 * third, third, third]
    .map((of, part) => ((ends[part + 1] ?? 0) - (ends[part] ?? 0)) / of)
    .toSorted((one, other) => one - other)
  const work = (ends[3] ?? 0) - (ends[0] ?? 0) - rateLimitWaitMs
  return rateLimitWaitMs + Math.max(Math.min(work, usual * pages), 0)
}

/** How far a walk is, in whole percent of its items; null if its length is unknown. */
export function walkPercent(seen: number | null, total: number | null): number | null {
  // Items that came since the first answer are not in its total, so more may be seen than it says.
  return seen === null || total === null || total === 0
    ? null
    : Math.floor((100 * Math.min(seen, total)) / total)
}
