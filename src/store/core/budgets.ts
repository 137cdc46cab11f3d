import type { StoredShare } from '../../sync/store.ts'
import type { BudgetStore } from '../../sync/types.ts'
import { all, type Dialect, msOf, one, type Rule, run, type Runner, timeOf, type Values } from './sql.ts'

// `sync_gates`: the budgets of requests, by scope. `sync_shares`: what refreshes have used of them.

/** What reads and writes of a budget return as well. */
export interface BudgetNews {
  /** Grows with each change. */
  version: number
  /** The database's time, in epoch milliseconds. */
  at: number
}

interface BudgetRow extends BudgetNews {
  closedUntil: string
  known: string | null
}

/** Runs a rule of one statement, which may write: it is a transaction by itself, at half the price of one around it. */
export type Single = <T>(begin: () => Rule<T>) => Promise<T>

/** The budgets of requests: the version decides who was first. `compare`: what the answer of a shared clock is told. */
export function createBudgets(
  { dialect, single }: Pick<Runner, 'dialect'> & { single: Single },
  compare: () => (at: number) => void = () => () => {},
): BudgetStore {
  const news = `version, ${dialect.now} AS at`
  const read = `SELECT closed_until AS "closedUntil", known, ${news} FROM sync_gates WHERE scope = :scope::text`
  const write = `
    INSERT INTO sync_gates AS gate (scope, closed_until, known, waiting_for, waiting_until, version)
    VALUES (:scope::text, :closedUntil, :known, :waitingFor, :waitingUntil, :version + 1)
    ON CONFLICT (scope) DO UPDATE SET
      closed_until = excluded.closed_until, known = excluded.known, waiting_for = excluded.waiting_for,
      waiting_until = excluded.waiting_until, version = excluded.version
    WHERE gate.version = :version
    RETURNING ${news}
  `

  /** The row that a statement returns; null: none. `values`: made once it may be written. */
  async function ask<T extends BudgetNews>(text: string, values: () => Values): Promise<T | null> {
    const noteTime = compare()
    const row = await single(() => one<T>(text, values()))
    if (row) noteTime(row.at)
    return row
  }

  return {
    async read(scope) {
      const row = await ask<BudgetRow>(read, () => ({ scope }))
      return {
        closedUntil: row ? msOf(row.closedUntil) : 0,
        known: row?.known ?? null,
        version: String(row?.version ?? 0),
      }
    },
    async compareAndSet(scope, version, next) {
      const written = await ask(write, () => {
        const { closedUntil, waitingUntil, ...budget } = next()
        const times = {
          closedUntil: timeOf(closedUntil),
          waitingUntil: waitingUntil === 0 ? null : timeOf(waitingUntil),
        }
        return { scope, version: Number(version), ...budget, ...times }
      })
      return written && String(written.version)
    },
  }
}

/** What the refreshes of all lists with one of these budgets have used. The column `scope` is the budget's key. */
export function* readShares(dialect: Dialect, budgetKeys: readonly string[]): Rule<StoredShare[]> {
  const rows = yield* all<Omit<StoredShare, 'at'> & { at: string }>(
    `
      SELECT scope AS "budgetKey", at, level, version
      FROM sync_shares
      WHERE scope IN (SELECT one.value FROM ${dialect.each(':keys::text', 'one')})
    `,
    { keys: JSON.stringify(budgetKeys) },
  )
  return rows.map((row) => ({ ...row, at: msOf(row.at) }))
}

/** Writes a share whose version is the one that follows the stored one. False if another process was faster. */
export function* writeShare({ at, ...share }: StoredShare): Rule<boolean> {
  const write =
    share.version === 1
      ? `
        INSERT INTO sync_shares (scope, at, level, version)
        VALUES (:budgetKey, :at, :level, :version)
        ON CONFLICT (scope) DO NOTHING
      `
      : `
        UPDATE sync_shares
        SET at = :at, level = :level, version = :version
        WHERE scope = :budgetKey AND version = :version - 1
      `
  return (yield* run(write, { ...share, at: timeOf(at) })) > 0
}
