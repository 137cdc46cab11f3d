import { grouped, inWords } from '../../text.ts'
import type { Trigger } from '../types.ts'

/** What the mirror knows of the work of another process on a job. Times are ISO 8601. */
export interface OwnerWork {
  /** Whether that process is a `start`. */
  isDaemon: boolean
  /** Null: no run has begun, or the lists are compared (`verify`). */
  run: RunningRun | null
}

/** A run that has not ended, and how far its walk is; of a refresh, only that it began. */
export interface RunningRun {
  trigger: Trigger
  startedAt: string
  /** Of this run. */
  pages: number
  rowsSeen: number
  /** Of the walk: the next page, its distinct items in all its runs, and the length of the list. */
  nextPage: number | null
  walkSeen: number | null
  total: number | null
  updatedAt: string | null
  /** The latest end of a wait for its rate budget, which may be past. */
  waitingUntil: string | null
}

/** One page tells nothing of the speed: its request may have waited. */
const LEAST_PAGES = 2

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/**
 * Milliseconds that a walk still takes at the speed of its run so far, waits for the rate limit included, and not less than the
 * present wait; null if nothing tells. `now`: epoch milliseconds.
 */
export function walkLeft(
  { pages, rowsSeen, walkSeen, total, startedAt, updatedAt, waitingUntil }: Omit<RunningRun, 'trigger'>,
  now: number,
): number | null {
  if (walkSeen === null || total === null || updatedAt === null) return null
  if (pages < LEAST_PAGES || rowsSeen === 0) return null
  const spent = Date.parse(updatedAt) - Date.parse(startedAt)
  const until = waitingUntil === null ? 0 : Date.parse(waitingUntil) - now
  const wait = until <= LONGEST_WAIT_MS ? until : 0
  return Math.round(Math.max((spent / rowsSeen) * Math.max(total - walkSeen, 0), wait, 0))
}

/** How far a walk is, in whole percent of its items; null if its length is unknown. */
export function walkPercent(seen: number | null, total: number | null): number | null {
  // An item that came since the first answer is no part of its total.
  return seen === null || total === null || total === 0
    ? null
    : Math.floor((100 * Math.min(seen, total)) / total)
}

/** `the scheduler of process 4711`, `process 4711 on worker-2`. `name`: that of its lock, from `newLockName` or `workerName`. */
export function ownerName(name: string, work: OwnerWork | null): string {
  const [, host, pid] = /^(?:(.*)-)?(\d+)-[0-9a-f]{12}$/.exec(name) ?? []
  const process = pid === undefined ? `process ${name}` : `process ${pid}${host ? ` on ${host}` : ''}`
  return work?.isDaemon ? `the scheduler of ${process}` : process
}

/** `is working on it (page 51, 25 %, about 12 minutes left)`. */
export function workText(work: OwnerWork | null, now: number): string {
  const run = work?.run
  if (!run) return 'is working on it (comparing it, or about to begin)'
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

/** How long its work still takes about, if that is known. Milliseconds. */
export function leftOf(work: OwnerWork | null, now: number): number | null {
  return work?.run ? walkLeft(work.run, now) : null
}
