import { InterruptedError } from '../../errors.ts'
import { createStopWatch } from '../core/sql.ts'
import type { PostgresAddress } from './address.ts'
import { isAway, isConflict, isRefusedEachTime, translate } from './errors.ts'

// How a server that is away is waited for: it is tried again with growing waits, until it is there or the process is to stop.

/** What working with a server takes from its process. */
export interface Patience {
  /** Milliseconds of a clock that is never set. */
  elapsed: () => number
  /** Rejects once the signal is aborted. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  every: (ms: number, task: () => void) => () => void
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
  /** Reports what this process waits for. */
  report?: ((message: string) => void) | undefined
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5000
const REPORT_EVERY_MS = 60_000

const MOST_CONFLICTS = 20

/** Tries of a statement that the server ends each time, by its statement_timeout for example: about a minute. */
const MOST_REFUSED = 15

/** Returns a function that repeats a task until the server is there and nothing conflicts. It throws our errors. */
export function createPersistence(address: PostgresAddress, { elapsed, sleep, signal, report }: Patience) {
  /** Whether the server was away at the last try of any task. */
  let isAwayNow = false
  const isTimeToStop = createStopWatch(signal, elapsed)
  /** When a wait was reported last, by any task: hundreds of lists may wait at once. Null: the server has answered since. */
  let toldAt: number | null = null

  function assertPatience(): void {
    if (isTimeToStop())
      throw new InterruptedError('stopped while the PostgreSQL server was away; the next run continues')
  }

  function tell(error: unknown): void {
    if (toldAt !== null && elapsed() - toldAt < REPORT_EVERY_MS) return
    const known = translate(address, error)
    report?.(`waiting for the mirror: ${known instanceof Error ? known.message : ''}`)
    toldAt = elapsed()
  }

  return async <T>(task: () => Promise<T>): Promise<T> => {
    let [conflicts, refused, waitMs] = [0, 0, 0]
    for (;;) {
      // Each further try would take its time, and there may be many of them.
      if (isAwayNow) assertPatience()
      try {
        const result = await task()
        isAwayNow = false
        // Others may get answers to what this one may not do, such as writing to a full disk.
        if (waitMs > 0 && toldAt !== null) {
          report?.('the PostgreSQL server answers again')
          toldAt = null
        }
        return result
      } catch (error) {
        if (isConflict(error) && conflicts++ < MOST_CONFLICTS) continue
        // A list that fails is seen, and read again at its next time; one that waits forever is not.
        if (!isAway(error) || (isRefusedEachTime(error) && ++refused >= MOST_REFUSED))
          throw translate(address, error)
        isAwayNow = true
        assertPatience()
        tell(error)
      }
      waitMs = signal.aborted ? FIRST_WAIT_MS : Math.min(Math.max(waitMs * 2, FIRST_WAIT_MS), LONGEST_WAIT_MS)
      // The signal ends it; after that attempts do not follow each other at once either.
      await (signal.aborted ? sleep(waitMs) : sleep(waitMs, signal).catch(() => {}))
    }
  }
}
