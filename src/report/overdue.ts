import { isAhead } from '../clock.ts'
import type { StatusRow } from '../store/core/status.ts'

// Whether a list should have been read by now.

/** A run may start this late: it may wait 30 seconds for the file's lock. */
const GRACE_MS = 30_000

/** All attempts at a page together take less, unless the server asks for a pause: then `waiting_until` is set. */
const STALLED_MS = 3_600_000

/**
 * The moment from which the next time of the schedule counts (epoch milliseconds): the end of the last run by schedule or
 * by hand, since a tick during a run is skipped, or `as_of` if that is later; null if there was neither. A killed run does not
 * count: a process in a crash loop would never be overdue.
 */
export function lastAttempt(
  row: Pick<StatusRow, 'as_of' | 'last_sync_finished_at'>,
  now: number,
): number | null {
  const times = [row.as_of, row.last_sync_finished_at].flatMap((time) =>
    time === null || isAhead(time, now) ? [] : [Date.parse(time)],
  )
  return times.length === 0 ? null : Math.max(...times)
}

/**
 * Whether a list should have been read by now. One that was never read is overdue until a process begins.
 * @param dueAt The first time of its schedule since `lastAttempt`; null if none has come.
 */
export function isOverdue(row: StatusRow, dueAt: number | null, now: number): boolean {
  if (row.configured !== 1) return false
  const isNeverTried = lastAttempt(row, now) === null
  if (!isNeverTried && (dueAt === null || now - dueAt < GRACE_MS)) return false
  return row.running === false || isStalled(row, now)
}

/** No page written for an hour, by one run or by several that were killed, and no recorded wait explains it. */
function isStalled(row: StatusRow, now: number): boolean {
  if (row.waiting_until !== null) return false
  const signs = [row.walk_updated_at, row.tried_since ?? row.last_run_at].flatMap((time) =>
    time ? [Date.parse(time)] : [],
  )
  return signs.length > 0 && now - Math.max(...signs) > STALLED_MS
}
