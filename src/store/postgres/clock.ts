/**
 * The server's time, which all workers use: the time for which this process has run, plus an offset that answers of the server
 * correct. The clocks of the workers' machines may differ, and may be set at any time.
 */
export interface ServerClock {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds since some moment, whatever the server says meanwhile. */
  elapsed(): number
  /** Call it before a statement that returns the server's time, and call its result with that time: it corrects the clock. */
  compare(): (at: number) => void
}

/** A clock was set if the server's time is this far outside of the time between the question and its answer. Milliseconds. */
const TOLERANCE_MS = 250

/** The server's time, by an answer that says it. */
export const SERVER_TIME = 'extract(epoch FROM clock_timestamp())::double precision * 1000'

export function createServerClock(elapsed: () => number): ServerClock {
  // Nothing is known yet: the first answer sets it.
  let ahead = Number.NaN
  return {
    now: () => Math.round(elapsed() + ahead),
    elapsed,
    compare() {
      const asked = elapsed()
      return (at) => {
        const answered = elapsed()
        const isTrue = at >= asked + ahead - TOLERANCE_MS && at <= answered + ahead + TOLERANCE_MS
        if (!isTrue) ahead = at - (asked + answered) / 2
      }
    },
  }
}
