import type { Sql } from './pool.ts'

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
   * No request that is counted should leave before this time (epoch milliseconds): after the clock was set forward, what was sent just
   * before seems to be longer ago than it is.
   */
  sureAt(): number
}

/** A clock was set if the server's time is this far outside of the time between the question and its answer. Milliseconds. */
const TOLERANCE_MS = 250

/** The server's time, by an answer that says it. */
export const SERVER_TIME = 'extract(epoch FROM clock_timestamp())::double precision * 1000'

/** Requests count for this much longer than their window, so that setting the clock forward by less changes nothing. Milliseconds. */
const COVERED_MS = 1000

/** Added to the window: after both, nothing that was sent before counts any more, however far the clock was set. Milliseconds. */
const MARGIN_MS = 2000

const MINUTE_MS = 60_000

/** How often the offset is measured; the quickest answer counts. */
const TRIES = 3

export interface ClockOptions {
  /** For how long requests count. Milliseconds. */
  windowMs?: number
  /** Called each time that the clock was set forward, with how long no request that is counted should leave. */
  onForward?: (waitMs: number) => void
}

/** Returns the clock, and what measures it again. */
export async function createServerClock(
  sql: Pick<Sql, 'rows'>,
  elapsed: () => number,
  { windowMs = MINUTE_MS, onForward }: ClockOptions = {},
): Promise<{ clock: ServerClock; measure: () => Promise<void> }> {
  let ahead = 0
  /** By how much `ahead` may be wrong. */
  let uncertain = Number.POSITIVE_INFINITY
  let sureAt = Number.NEGATIVE_INFINITY

  function correct(to: number, within: number): void {
    const atLeast = to - ahead - within - uncertain
    ahead = to
    uncertain = within
    if (atLeast <= COVERED_MS) return
    sureAt = elapsed() + windowMs + MARGIN_MS
    onForward?.(windowMs + MARGIN_MS)
  }

  async function measure(): Promise<void> {
    let best = { took: Number.POSITIVE_INFINITY, ahead }
    for (let count = 0; count < TRIES; count++) {
      const asked = elapsed()
      const [row] = await sql.rows<{ at: number }>(`SELECT ${SERVER_TIME} AS at`)
      const took = elapsed() - asked
      if (row && took < best.took) best = { took, ahead: row.at - asked - took / 2 }
    }
    if (best.took < Number.POSITIVE_INFINITY) correct(best.ahead, best.took / 2)
  }

  await measure()
  const clock: ServerClock = {
    now: () => Math.round(elapsed() + ahead),
    elapsed,
    sureAt: () => Math.round(sureAt + ahead),
    compare() {
      const asked = elapsed()
      return (at) => {
        const answered = elapsed()
        const isTrue = at >= asked + ahead - TOLERANCE_MS && at <= answered + ahead + TOLERANCE_MS
        if (!isTrue) correct(at - (asked + answered) / 2, (answered - asked) / 2)
        return isTrue
      }
    },
  }
  return { clock, measure }
}
