import type { Sql } from '../sql.ts'

/**
 * The server's time, which all workers use: the time for which this process has run, plus an offset that answers of the server
 * correct. The clocks of the workers' machines may differ, and may be set at any time.
 */
export interface ServerClock {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds since some moment, whatever the server says meanwhile. */
  elapsed(): number
  /**
   * Call it before a statement that returns the server's time, and call its result with that time. Returns false, and corrects the
   * clock, if the two differed.
   */
  compare(): (at: number) => boolean
  /**
   * For how long no request should leave, in milliseconds: after the clock was set forward, what was sent just before seems to be
   * longer ago than it is.
   */
  unsureFor(): number
}

/** A clock was set if the server's time is so far outside of the time between the question and its answer. Milliseconds. */
const TOLERANCE_MS = 250

/** The server's time, by an answer that says it. */
export const SERVER_TIME = 'extract(epoch FROM clock_timestamp())::double precision * 1000'

/** Requests count for a minute and by so much longer, so that a clock which was set forward by less changes nothing. Milliseconds. */
const COVERED_MS = 1000

/** Until all that was sent before counts no longer, however far the clock was set. Milliseconds. */
const UNSURE_MS = 62_000

/** The offset is measured so many times; the quickest answer counts. */
const TRIES = 3

/** Returns the clock, and what measures it again. */
export async function createServerClock(
  sql: Pick<Sql, 'rows'>,
  elapsed: () => number,
): Promise<{ clock: ServerClock; measure: () => Promise<void> }> {
  let ahead = 0
  let sureAt = Number.NEGATIVE_INFINITY

  /** `by`: at least so far. */
  function noteForward(by: number): void {
    if (by > COVERED_MS) sureAt = elapsed() + UNSURE_MS
  }

  async function measure(): Promise<void> {
    let best = { took: Number.POSITIVE_INFINITY, ahead }
    for (let count = 0; count < TRIES; count++) {
      const asked = elapsed()
      const [row] = await sql.rows<{ at: number }>(`SELECT ${SERVER_TIME} AS at`)
      const took = elapsed() - asked
      if (row && took < best.took) best = { took, ahead: row.at - asked - took / 2 }
    }
    const by = best.ahead - ahead - best.took / 2
    ahead = best.ahead
    noteForward(by)
  }

  await measure()
  sureAt = Number.NEGATIVE_INFINITY
  const clock: ServerClock = {
    now: () => Math.round(elapsed() + ahead),
    elapsed,
    unsureFor: () => Math.max(0, sureAt - elapsed()),
    compare() {
      const asked = elapsed()
      return (at) => {
        const answered = elapsed()
        const isTrue = at >= asked + ahead - TOLERANCE_MS && at <= answered + ahead + TOLERANCE_MS
        const before = ahead
        if (!isTrue) ahead = at - (asked + answered) / 2
        noteForward(ahead - before - (answered - asked) / 2)
        return isTrue
      }
    },
  }
  return { clock, measure }
}
