import type { Notice } from '../../../sync/types.ts'
import type { ColumnChange } from '../../columns/column.ts'
import type { Connection } from '../file/open.ts'
import type { Maintain } from '../maintenance.ts'
import type { Transact } from '../transaction.ts'
import { type AlterPlan, alterTables, describePlan, rowsOf } from './alter.ts'

/** What writing rows has come to; or what has to become of the columns first, where there is no room for them yet. */
export type Outcome<T> = { notices: readonly Notice[] } & (
  | { result: T; changes?: never }
  | { result?: never; changes: readonly ColumnChange[] }
)

export interface RoomOptions {
  connection: Connection
  transact: Transact
  maintain: Maintain
  /** ISO 8601. */
  time: () => string
}

/** Tables are changed by this process, with the rows, if that goes through so many rows: some tenths of a second. */
export const INLINE_ROWS = 20_000

/**
 * Writes rows in one transaction: the changes of the tables that they need are part of it, but for those of large tables,
 * which another process makes before. `write` is called again after each change. Returns its result, and what the log says
 * of the columns.
 */
export async function writeWithRoom<T>(
  { connection, transact, maintain, time }: RoomOptions,
  collection: string,
  write: () => Outcome<T>,
): Promise<{ result: T; notices: Notice[] }> {
  // By message: a plan that is made once more says the same again.
  const notices = new Map<string, Notice>()
  let outcome = await transact(write)
  for (;;) {
    for (const notice of outcome.notices) notices.set(notice.message, notice)
    if (!outcome.changes) return { result: outcome.result, notices: [...notices.values()] }
    const plan: AlterPlan = { collection, changes: outcome.changes, at: time() }
    const rows = rowsOf(connection, plan)
    if (rows > INLINE_ROWS) {
      await maintain('alterTables', plan, { what: describePlan(plan), rows })
      outcome = await transact(write)
    } else outcome = await transact(altering(connection, plan, write), 'rebuilding')
  }
}

function altering<T>(connection: Connection, plan: AlterPlan, write: () => T): () => T {
  return () => {
    alterTables(connection, plan)
    return write()
  }
}
