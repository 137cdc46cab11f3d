import { nextFireAfter } from './cron.ts'

/** What the mirror remembers of a job; epoch milliseconds, null when there was none. */
export type LastRuns = {
  /** Start of the last complete full walk. */
  completedAt: number | null
  /** Start of the last run by schedule or by hand, whatever its end. */
  startedAt: number | null
}

/**
 * Whether `start` runs a job at once: it was never completed, or fell due since it was last begun. A run that failed has
 * had its turn, so that a process that is started again and again does not ask a server in trouble each time.
 * `now` in epoch milliseconds; the expression has been checked.
 */
export function isDueAtStart(
  last: LastRuns,
  schedule: { expression: string; timezone: string },
  now: number,
): boolean {
  if (last.completedAt === null) return true
  const begun = Math.max(last.completedAt, last.startedAt ?? last.completedAt)
  return nextFireAfter(schedule.expression, schedule.timezone, begun, now) !== null
}
