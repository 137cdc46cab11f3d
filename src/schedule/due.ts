import { nextFireAfter } from './cron.ts'

/** What the mirror remembers of a job; epoch milliseconds, null when there was none. */
export type LastRuns = {
  /** Start of the last complete full walk. */
  completedAt: number | null
  /** Start of the last run by schedule or by hand, whatever its end. */
  startedAt: number | null
}

export type Schedule = { expression: string; timezone: string }

/** The first fire time after `after`; null when there was none until now. */
interface Searched {
  after: number
  fire: number | null
}

/**
 * Tells of job after job whether `start` runs it at once: it was never completed, or fell due since it was last begun. A
 * run that failed has had its turn, so that a process that is started again and again does not ask a server in trouble
 * each time. `now` in epoch milliseconds; the expressions have been checked.
 *
 * What was found for a job is kept for those of the same schedule, which most often began since: 500 of them cost what
 * one does, and not a search through the hours of a day each.
 */
export function createDueCheck(now: number): (last: LastRuns, schedule: Schedule) => boolean {
  const searched = new Map<string, Searched>()

  function fireSince(begun: number, { expression, timezone }: Schedule): number | null {
    const name = `${timezone} ${expression}`
    const known = searched.get(name)
    if (known && known.after <= begun && (known.fire === null || begun < known.fire)) return known.fire
    const fire = nextFireAfter(expression, timezone, begun, now)
    searched.set(name, { after: begun, fire })
    return fire
  }

  return ({ completedAt, startedAt }, schedule) =>
    completedAt === null || fireSince(Math.max(completedAt, startedAt ?? completedAt), schedule) !== null
}
