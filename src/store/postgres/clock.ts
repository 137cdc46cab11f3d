import type { BudgetStore } from '../../sync/types.ts'
import { createBudgets } from '../core/budgets.ts'
import { POSTGRES } from './driver.ts'
import type { Server } from './server.ts'

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

/** A permit whose writing took longer would count too early. Milliseconds. */
const LATE_MS = 250

/** How often one is written again: a server that is always this slow would never be on time. */
const MOST_LATE = 3

/** The budgets of requests, each read and written by one statement. */
export function serverBudgets({ read, clock }: Pick<Server, 'read' | 'clock'>): BudgetStore {
  const budgets = createBudgets({ dialect: POSTGRES, single: (begin) => read(begin()) }, clock.compare)
  return {
    ...budgets,
    async compareAndSet(scope, version, next) {
      let known: string | null = version
      for (let tries = 0; known !== null && tries < MOST_LATE; tries++) {
        const begun = clock.elapsed()
        known = await budgets.compareAndSet(scope, known, next)
        if (clock.elapsed() - begun <= LATE_MS) break
      }
      return known
    },
  }
}
