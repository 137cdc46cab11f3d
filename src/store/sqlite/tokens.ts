import type { BudgetStore } from '../../sync/types.ts'
import { budgetIn, readBudget, writeBudget } from '../core/budgets.ts'
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
import type { LockWait, Transact } from './transaction.ts'

interface TokensOptions {
  connection: Connection
  transact: Transact
  wait: LockWait
  /** Makes the mirror's salt; only the first one in a mirror's life is used. */
  newSalt: () => string
}

export function createTokens({ connection, transact: writing, wait, newSalt }: TokensOptions): Tokens {
  const reading = <T>(rule: Rule<T>): T => translatingErrors(connection.name, () => runRule(connection, rule))

  const budgets: BudgetStore = {
    async read(scope) {
      return budgetIn(reading(readBudget(SQLITE, scope)))
    },
    /** Each request of the API does this once: one statement is a transaction by itself, at half the price of one around it. */
    async compareAndSet(scope, version, next) {
      const written = await wait(() =>
        runRule(connection, writeBudget(SQLITE, scope, Number(version), next())),
      )
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
