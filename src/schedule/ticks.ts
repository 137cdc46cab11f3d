import { nextFireAfter } from './cron.ts'

/** How far ahead a schedule is searched at once. */
const SEARCHED_MS = 86_400_000

/** The loop that watches the time may be late by so much on a machine under load. */
export const LOOP_LATE_MS = 60_000

/** The clock was set back if it shows a time that much earlier than before. */
const SET_BACK_MS = 5000

/** A time of a schedule that has come. */
export interface Tick<T> {
  schedule: T
  /** Epoch milliseconds. */
  at: number
}

/**
 * Watches schedules by a clock that is passed in: this machine's, or that of the server which several workers share, so that all
 * of them find the same times. `from`: epoch milliseconds, after which times count.
 */
export function createTicks<T extends Schedule>(schedules: readonly T[], from: number) {
  const watched = schedules.map((schedule) => ({ schedule, ...search(schedule, from) }))
  let seen = from
  return {
    /**
     * The times that have come since the last call: of each schedule the first one, however many were missed. After the clock was set
     * back, the same times come again.
     */
    come(now: number): Tick<T>[] {
      if (now < seen - SET_BACK_MS) for (const one of watched) Object.assign(one, search(one.schedule, now))
      seen = now
      const due = watched.filter(({ at }) => at <= now)
      const ticks = due.filter(({ fires }) => fires).map(({ schedule, at }) => ({ schedule, at }))
      for (const one of due) Object.assign(one, search(one.schedule, one.fires ? now : one.at))
      return ticks
    },
    /** Nothing comes before this moment. */
    quietUntil: () => Math.min(...watched.map(({ at }) => at)),
  }
}

/** The jobs of each schedule, so that it is searched once: 500 organizations cost no more than one. */
export function bySchedule<J extends Schedule>(
  jobs: readonly J[],
): (Schedule & { name: string; jobs: J[] })[] {
  const groups = Map.groupBy(jobs, ({ expression, timezone }) => `${timezone} ${expression}`)
  return [...groups].flatMap(([name, group]) => {
    const [first] = group
    return first ? [{ name, expression: first.expression, timezone: first.timezone, jobs: group }] : []
  })
}

/** The next moment at which something is to be done: the schedule fires, or is searched further. */
function search({ expression, timezone }: Schedule, after: number): { at: number; fires: boolean } {
  const until = after + SEARCHED_MS
  const fire = nextFireAfter(expression, timezone, after, until)
  return { at: fire ?? until, fires: fire !== null }
}

type Schedule = { expression: string; timezone: string }
