import type { Trigger } from './types.ts'

/** What the mirror knows of the work of another process on a job. */
export interface OwnerWork {
  /** Whether that process is a `start`. */
  isDaemon: boolean
  /** Whether it compares the list: then it has no run. */
  isVerify: boolean
  /** Of its run; null: none has begun. */
  trigger: Trigger | null
}

/**
 * `the scheduler of process 4711 on worker-2`. `name`: as `process-mark.ts` makes it; or `another process`, while it is not written yet.
 */
export function ownerName(name: string, work: OwnerWork | null): string {
  const [, host, pid] = /^(.*)-(\d+)-[0-9a-f]{12}$/.exec(name) ?? []
  const process = pid === undefined ? name : `process ${pid} on ${host}`
  return work?.isDaemon ? `the scheduler of ${process}` : process
}

/** `is working on it`, `is refreshing it`. */
export function workText(work: OwnerWork | null): string {
  if (work?.isVerify) return 'is comparing it with the API (verify)'
  if (work?.trigger === 'refresh') return 'is refreshing it'
  return work?.trigger === 'backfill' ? 'is working on it (a backfill)' : 'is working on it'
}

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/** Milliseconds that a wait still lasts; 0: it is over, or there is none. `until`: ISO 8601; `now`: epoch milliseconds. */
export function waitLeft(until: string | null, now: number): number {
  const left = Date.parse(until ?? '') - now
  return left > 0 && left <= LONGEST_WAIT_MS ? left : 0
}

/** How far a walk is, in whole percent of its items; null if its length is unknown. */
export function walkPercent(seen: number | null, total: number | null): number | null {
  // Items that came since the first answer are not in its total, so more may be seen than it says.
  return seen === null || total === null || total === 0
    ? null
    : Math.floor((100 * Math.min(seen, total)) / total)
}
