import type { BudgetStore } from '../../sync/types.ts'
import { budgetIn, readBudget, UNWRITTEN, writeBudget } from '../core/budgets.ts'
import type { Rule } from '../core/sql.ts'
import {
  commonTokens,
  fingerprintOf,
  heldReasonOfToken,
  hold,
  makeSalt,
  readSalt,
  register,
  type Tokens,
} from '../core/tokens.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/errors.ts'
import type { Transact } from './transaction.ts'

/** `newSalt` makes the mirror's salt; only the first one in a mirror's life is used. */
export function createTokens(connection: Connection, writing: Transact, newSalt: () => string): Tokens {
  const reading = <T>(rule: Rule<T>): T => translatingErrors(connection.name, () => runRule(connection, rule))

  /** A budget is decided on under the file's lock. */
  const budgets: BudgetStore = {
    async read(scope) {
      return budgetIn(reading(readBudget(SQLITE, scope)))
    },
    async compareAndSet(scope, version, next) {
      // Another process was faster, which shows without the lock.
      if (String(reading(readBudget(SQLITE, scope))?.version ?? UNWRITTEN) !== version) return null
      const written = await writing(() => writeBudget(SQLITE, scope, Number(version), next()))
      return written && String(written.version)
    },
  }

  return {
    ...commonTokens(SQLITE, async (rule) => reading(rule), writing),
    register: (organizations) =>
      writing(function* () {
        yield* makeSalt(newSalt)
        yield* register(SQLITE, organizations)
      }),
    fingerprint: (token) => fingerprintOf(token, reading(readSalt())),
    holdOf: (fingerprint) => ({ heldReason: () => reading(heldReasonOfToken(fingerprint)) }),
    async hold(...told) {
      await writing(() => hold(SQLITE, ...told))
    },
    budgets,
  }
}
