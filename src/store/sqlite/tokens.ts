import type { BudgetStore } from '../../sync/types.ts'
import { lastRuns, lastRunsOfAll } from '../core/runs.ts'
import { msOf, type Rule } from '../core/sql.ts'
import {
  fingerprintOf,
  heldReason,
  heldReasonOf,
  hold,
  lastToken,
  liftHold,
  makeSalt,
  readBudget,
  register,
  resume,
  saltOf,
  type Tokens,
  UNWRITTEN,
  useToken,
  writeBudget,
} from '../core/tokens.ts'
import { runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import type { Connection } from './sql.ts'
import type { Transact } from './transaction.ts'

/** `newSalt`: only its first value in a mirror's life is used. */
export function createTokens(connection: Connection, write: Transact, newSalt: () => string): Tokens {
  const reading = <T>(rule: Rule<T>): T => translatingErrors(connection.name, () => runRule(connection, rule))
  const writing = <T>(begin: () => Rule<T>) => write(() => runRule(connection, begin()))

  /** A budget is decided on under the file's lock. */
  const budgets: BudgetStore = {
    async read(scope) {
      const row = reading(readBudget(SQLITE, scope))
      return {
        closedUntil: msOf(row?.closedUntil ?? 0),
        known: row?.known ?? null,
        version: String(row?.version ?? UNWRITTEN),
      }
    },
    async compareAndSet(scope, version, next) {
      // Another process was faster, which shows without the lock.
      if (String(reading(readBudget(SQLITE, scope))?.version ?? UNWRITTEN) !== version) return null
      const written = await writing(() => writeBudget(SQLITE, scope, Number(version), next()))
      return written && String(written.version)
    },
  }

  return {
    register: (organizations) =>
      writing(function* () {
        yield* makeSalt(newSalt)
        yield* register(SQLITE, organizations)
      }),
    fingerprint: (token) => fingerprintOf(token, reading(saltOf())),
    async useToken(organizationId, fingerprint) {
      // Mostly nothing has changed, and then no lock is needed.
      if (reading(lastToken(organizationId)) === fingerprint) return
      await writing(() => useToken(organizationId, fingerprint))
    },
    holdOf: (fingerprint) => ({ heldReason: () => reading(heldReason(fingerprint)) }),
    heldReasonOf: async (organizationId, fingerprint) => reading(heldReasonOf(organizationId, fingerprint)),
    async hold(organizationIds, fingerprint, reason, at) {
      await writing(() => hold(SQLITE, { organizationIds, fingerprint, reason, at }))
    },
    async liftHold(fingerprint) {
      await writing(() => liftHold(fingerprint))
    },
    resume: (organizationIds) => writing(() => resume(SQLITE, organizationIds)),
    budgets,
    lastRuns: async (organization, collection) => reading(lastRuns({ organization, collection })),
    allLastRuns: async () => reading(lastRunsOfAll()),
  }
}
