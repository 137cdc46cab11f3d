import type { StoredShare } from '../../sync/store.ts'
import type { BudgetStore, StoredBudget } from '../../sync/types.ts'
import { all, type Dialect, msOf, one, type Rule, type Runner, run, timeOf } from './sql.ts'

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
  async function ask<T extends BudgetNews>(begin: () => Rule<T | null>): Promise<T | null> {
    const noteTime = compare()
    const row = await single(begin)
    if (row) noteTime(row.at)
    return row
  }

  return {
    async read(scope) {
      const row = await ask(() => readBudget(dialect, scope))
      return {
        closedUntil: row ? msOf(row.closedUntil) : 0,
        known: row?.known ?? null,
        version: String(row?.version ?? 0),
      }
    },
    async compareAndSet(scope, version, next) {
      const written = await ask(() => writeBudget(dialect, scope, Number(version), next()))
      return written && String(written.version)
    },
  }
}

const news = ({ now }: Dialect) => `version, ${now} AS at`

/** Null if nobody has written it yet. */
function readBudget(dialect: Dialect, scope: string): Rule<BudgetRow | null> {
  return one(
    `SELECT closed_until AS "closedUntil", known, ${news(dialect)} FROM sync_gates WHERE scope = :scope::text`,
    { scope },
  )
}

/** Writes a budget if its version is still this one. Returns null if another process was faster. */
function writeBudget(
  dialect: Dialect,
  scope: string,
  version: number,
  { closedUntil, known, waitingFor, waitingUntil }: StoredBudget,
): Rule<BudgetNews | null> {
  return one(
    `
      INSERT INTO sync_gates AS gate (scope, closed_until, known, waiting_for, waiting_until, version)
      VALUES (:scope::text, :closedUntil, :known, :waitingFor, :waitingUntil, :version + 1)
      ON CONFLICT (scope) DO UPDATE SET
        closed_until = excluded.closed_until, known = excluded.known, waiting_for = excluded.waiting_for,
        waiting_until = excluded.waiting_until, version = excluded.version
      WHERE gate.version = :version
      RETURNING ${news(dialect)}
    `,
    {
      scope,
      version,
      closedUntil: timeOf(closedUntil),
      known,
      waitingFor,
      waitingUntil: waitingUntil === 0 ? null : timeOf(waitingUntil),
    },
  )
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
