import { nextFireAfter } from './cron.ts'

/** The loop that watches the time may be late by so much on a machine under load. */
export const LOOP_LATE_MS = 60_000

/** The clock was set back if it shows a time that much earlier than before. */
const SET_BACK_MS = 5000

interface Scheduled {
  expression: string
  timezone: string
}

/**
 * Watches the schedules of jobs by a clock that is passed in: this machine's, or that of the server which several workers share. `from`: epoch
 * milliseconds, after which times count.
 */
export function createTicks<J extends Scheduled>(jobs: readonly J[], from: number) {
  const nextOf = ({ expression, timezone }: Scheduled, after: number) =>
    nextFireAfter(expression, timezone, after) ?? Number.POSITIVE_INFINITY
  // Each schedule is searched once, however many jobs have it.
  const groups = Map.groupBy(jobs, ({ expression, timezone }) => `${timezone} ${expression}`)
  const schedules = [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map((schedule) => ({ schedule, jobs: group, at: nextOf(schedule, from) })),
  )
  let seen = from
  return {
    /** The jobs whose time has come since the last call, once however often it came. After the clock was set back, the same times come again. */
    come(now: number): J[] {
      if (now < seen - SET_BACK_MS) for (const one of schedules) one.at = nextOf(one.schedule, now)
      seen = now
      const due = schedules.filter(({ at }) => at <= now)
      for (const one of due) one.at = nextOf(one.schedule, now)
      return due.flatMap((one) => one.jobs)
    },
    /** Nothing comes before this moment. */
    quietUntil: () => Math.min(...schedules.map(({ at }) => at)),
  }
}
