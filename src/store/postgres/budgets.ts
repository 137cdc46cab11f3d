import type { BudgetStore } from '../../sync/types.ts'
import { msOf, type Rule } from '../core/sql.ts'
import { type BudgetNews, readBudget, UNWRITTEN, writeBudget } from '../core/tokens.ts'
import { POSTGRES, runRule } from './driver.ts'
import type { ServerClock } from './server/clock.ts'
import type { Server } from './server/server.ts'

/** A permit that was written so long after its time, or by a wrong clock, counts too early, and is written again. Milliseconds. */
export const LATE_MS = 250

/** A server that is always so slow is late by a known time. */
export const MOST_TRIES = 3

/**
 * The budgets of requests, for many workers: the version decides who was first. `beginAsking` is called before each statement, and
 * its result gets why the token that the scope names is held.
 */
export function createBudgets(
  server: Server,
  clock: ServerClock,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {
  /** `isOnTime`: by our clock, which was right. */
  async function ask<T extends BudgetNews>(scope: string, rule: Rule<T | null>) {
    const noteHold = beginAsking(scope)
    const [asked, noteTime] = [clock.elapsed(), clock.compare()]
    const row = await runRule(server, rule)
    if (!row) return null
    noteHold(row.held)
    return { ...row, isOnTime: noteTime(row.at) && clock.elapsed() - asked <= LATE_MS }
  }

  return {
    sureAt: clock.sureAt,
    async read(scope) {
      const row = await ask(scope, readBudget(POSTGRES, scope))
      return {
        closedUntil: msOf(row?.closedUntil ?? 0),
        known: row?.known ?? null,
        version: String(row?.version ?? UNWRITTEN),
      }
    },
    async compareAndSet(scope, version, next) {
      let known = Number(version)
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const written = await ask(scope, writeBudget(POSTGRES, scope, known, next()))
        if (!written) return null
        known = written.version
        if (written.isOnTime) break
      }
      return String(known)
    },
  }
}
