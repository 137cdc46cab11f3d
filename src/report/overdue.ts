import type { StatusRow } from '../store/status.ts'

/** A run may begin so late: it may have to wait for the file's lock, for 30 seconds. */
const GRACE_MS = 30_000

/** All tries of a page together take less, unless the server asks for a pause, which is told of. */
const STALLED_MS = 3_600_000

type Attempt = Pick<StatusRow, 'as_of' | 'last_sync_at' | 'last_sync_finished_at'>

/**
 * The moment from which the next time of the schedule counts (epoch milliseconds): the end of the last run by schedule or
 * by hand, since a time within it is skipped; null if there was none.
 */
export function lastAttempt(row: Attempt): number | null {
  const times = [row.as_of, row.last_sync_at, row.last_sync_finished_at].flatMap((time) =>
    time === null ? [] : [Date.parse(time)],
  )
  return times.length === 0 ? null : Math.max(...times)
}

/**
 * Whether a list should have been read by now. One that was never read is overdue until a process begins.
 * @param dueAt The first time of its schedule since `lastAttempt`; null if none has come.
 */
export function isOverdue(
  row: StatusRow & Pick<StatusRow, 'waiting_until'>,
  dueAt: number | null,
  now: number,
): boolean {
  if (row.configured !== 1) return false
  const isNeverTried = lastAttempt(row) === null
  if (!isNeverTried && (dueAt === null || now - dueAt < GRACE_MS)) return false
  return row.running === false || isStalled(row, now)
}

/** Whether a run has written nothing for long, without a reason. */
function isStalled(row: StatusRow, now: number): boolean {
  if (row.waiting_until !== null) return false
  const signs = [row.walk_updated_at, row.last_run_at].flatMap((time) => (time ? [Date.parse(time)] : []))
  return signs.length > 0 && now - Math.max(...signs) > STALLED_MS
}
