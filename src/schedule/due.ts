import { isAhead } from '../clock.ts'
import { nextFireAfter } from './cron.ts'

/** When a job last did what its schedule demands. Epoch milliseconds; null for never. */
interface LastRuns {
  /** Start of the last complete full walk. */
  completedAt: number | null
  /** Start of the last run by schedule or by hand, whatever its end. */
  startedAt: number | null
  /** Whether a sync's walk is open. */
  unfinished: boolean
}

/**
 * Whether `start` runs a job at once, and a worker one from the queue: it was never completed or is unfinished, or fell due since its last run
 * began. A failed run counts, so that a process that is restarted again and again does not burden a server in trouble. `now`: epoch
 * milliseconds.
 */
export function isDue(
  { completedAt, startedAt, unfinished }: LastRuns,
  { expression, timezone }: { expression: string; timezone: string },
  now: number,
): boolean {
  // An interrupted walk continues: it was due, and is not done.
  if (completedAt === null || unfinished || isAhead(completedAt, now)) return true
  const last = startedAt === null || isAhead(startedAt, now) ? completedAt : Math.max(completedAt, startedAt)
  return nextFireAfter(expression, timezone, last, now) !== null
}
