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
  /** Call it before a statement that returns the server's time, and call its result with that time: it corrects the clock. */
  compare(): (at: number) => void
}

/** A clock was set if the server's time is this far outside of the time between the question and its answer. Milliseconds. */
const TOLERANCE_MS = 250

/** The server's time, by an answer that says it. */
export const SERVER_TIME = 'extract(epoch FROM clock_timestamp())::double precision * 1000'

/** What the server's clock says. Epoch milliseconds. */
export async function serverTime(sql: Pick<Sql, 'rows'>): Promise<number> {
  const [row] = await sql.rows<{ at: number }>(`SELECT ${SERVER_TIME} AS at`)
  return row?.at ?? 0
}

/** How often the offset is measured; the quickest answer counts. */
const TRIES = 3

/** Returns the clock, and what measures it again. */
export async function createServerClock(
  sql: Pick<Sql, 'rows'>,
  elapsed: () => number,
): Promise<{ clock: ServerClock; measure: () => Promise<void> }> {
  let ahead = 0

  async function measure(): Promise<void> {
    let quickest = Number.POSITIVE_INFINITY
    for (let count = 0; count < TRIES; count++) {
      const asked = elapsed()
      const at = await serverTime(sql)
      const took = elapsed() - asked
      if (took >= quickest) continue
      quickest = took
      ahead = at - asked - took / 2
    }
  }

  await measure()
  const clock: ServerClock = {
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
  return { clock, measure }
}
