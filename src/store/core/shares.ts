import type { StoredShare } from '../../sync/store.ts'
import { all, type Dialect, msOf, type Rule, run, type StoredTime, timeOf } from './sql.ts'

// `sync_shares`: what refreshes of all lists with one budget pay, by the scope of the budget.

export function* readShares(dialect: Dialect, scopes: readonly string[]): Rule<StoredShare[]> {
  const rows = yield* all<Omit<StoredShare, 'at'> & { at: StoredTime }>(
    `
      SELECT scope, at, level, log_price AS "logPrice", version
      FROM sync_shares
      WHERE scope IN (SELECT one.value FROM ${dialect.each(':scopes::text', 'one')})
    `,
    { scopes: JSON.stringify(scopes) },
  )
  return rows.map((row) => ({ ...row, at: msOf(row.at) }))
}

/** Writes a share whose version is the one that follows the stored one. False if another process was faster. */
export function* writeShare({ at, ...share }: StoredShare): Rule<boolean> {
  const values = { ...share, at: timeOf(at) }
  const written =
    share.version === 1
      ? yield* run(
          `
            INSERT INTO sync_shares (scope, at, level, log_price, version)
            VALUES (:scope, :at, :level, :logPrice, :version)
            ON CONFLICT (scope) DO NOTHING
          `,
          values,
        )
      : yield* run(
          `
            UPDATE sync_shares
            SET at = :at, level = :level, log_price = :logPrice, version = :version
            WHERE scope = :scope AND version = :version - 1
          `,
          values,
        )
  return written > 0
}
