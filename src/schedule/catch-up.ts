import { nextFireAfter } from './cron.ts'

/** When a job last ran; epoch milliseconds, null for never. */
export type LastRuns = {
  /** Start of the last complete full walk. */
  completedAt: number | null
  /** Start of the last run by schedule or by hand, whatever its end. */
  startedAt: number | null
}

export type Schedule = { expression: string; timezone: string }

/**
 * Returns a check whether `start` runs a job at once: it was never completed, or fell due since its last run began. A
 * failed run counts, so that a process that is restarted again and again does not burden a server in trouble. `now` is
 * in epoch milliseconds; the expressions have been checked.
 */
export function createDueCheck(now: number): (last: LastRuns, schedule: Schedule) => boolean {
  const fireSince = createFireSearch(now)
  return ({ completedAt, startedAt }, schedule) =>
    completedAt === null || fireSince(Math.max(completedAt, startedAt ?? completedAt), schedule) !== null
}

/** Clocks of the processes on a mirror may differ by less. */
const AHEAD_MS = 60_000

/** Whether a run began in the future: by a clock that was set back since. No time of a schedule comes after it for as long. */
export function beganAhead({ completedAt, startedAt }: LastRuns, now: number): boolean {
  return Math.max(completedAt ?? 0, startedAt ?? 0) > now + AHEAD_MS
}

/**
 * Returns a function that finds the first time of a schedule after `begun` and until `now`; null: none. Jobs of one
 * schedule share a search where they can: 500 of them cost what one does.
 */
export function createFireSearch(now: number): (begun: number, schedule: Schedule) => number | null {
  /** By schedule: the first fire time after `after`, null for none until now. */
  const searched = new Map<string, { after: number; fire: number | null }>()

  return (begun, { expression, timezone }) => {
    const name = `${timezone} ${expression}`
    const known = searched.get(name)
    if (known && known.after <= begun && (known.fire === null || begun < known.fire)) return known.fire
    const fire = nextFireAfter(expression, timezone, begun, now)
    searched.set(name, { after: begun, fire })
    return fire
  }
}
