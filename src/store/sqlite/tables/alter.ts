import type { Notice } from '../../../sync/types.ts'
import { counted, printable } from '../../../text.ts'
import { keyColumnNames, splitKey } from '../../columns/catalog.ts'
import { type Column, type ColumnChange, foldName } from '../../columns/column.ts'
import { KINDS, type TableKind, tableName } from '../../core/sql.ts'
import { knownKey, loadColumns, saveColumns } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import { type Connection, quoted } from '../sql.ts'
import type { Transact } from '../transaction.ts'
import { replaceViews } from './array-views.ts'
import { addColumn, rebuildTable, type TableChanges } from './rebuild-table.ts'

/** A result; or, if the columns do not fit yet, the changes that they need first. */
export type Outcome<T> = { notices: readonly Notice[] } & (
  | { result: T; changes?: never }
  | { result?: never; changes: readonly ColumnChange[] }
)

export interface WriteOptions {
  connection: Connection
  transact: Transact
  /** Runs `alterTables` in another process. */
  maintain: (task: 'alterTables', plan: AlterPlan, work: { what: string; rows: number }) => Promise<unknown>
  /** ISO 8601. */
  time: () => string
}

/** Up to so many rows this process changes the tables itself: some tenths of a second. */
export const INLINE_ROWS = 20_000

/**
 * Makes the column changes that `write` asked for, and calls it again, in one transaction; large tables are changed
 * before, by another process. Returns the result of `write`, and notices about the columns for the log.
 */
export async function changeColumnsAndWrite<T>(
  { connection, transact, maintain, time }: WriteOptions,
  collection: string,
  asked: Outcome<T>,
  write: () => Outcome<T>,
): Promise<{ result: T; notices: readonly Notice[] }> {
  // By message: a repeated plan has the same notices again.
  const notices = new Map<string, Notice>()
  let outcome = asked
  for (;;) {
    for (const notice of outcome.notices) notices.set(notice.message, notice)
    if (!outcome.changes) return { result: outcome.result, notices: [...notices.values()] }
    const plan: AlterPlan = { collection, changes: outcome.changes, at: time() }
    const rows = rowsOf(connection, plan)
    if (rows > INLINE_ROWS) {
      await maintain('alterTables', plan, { what: describePlan(plan), rows })
      outcome = await transact(write)
    } else {
      const alterAndWrite = () => {
        alterTables(connection, plan)
        return write()
      }
      outcome = await transact(alterAndWrite, 'rebuilding')
    }
  }
}

/** The column changes that a collection needs before rows can be written. */
export interface AlterPlan {
  collection: string
  changes: readonly ColumnChange[]
  /** For `sync_columns`. */
  at: string
}

/** Copying a table takes as long as adding so many columns to it. */
const MANY_COLUMNS = 6

/**
 * Changes the tables and `sync_columns` by the plan. Returns false, and changes nothing, if another process
 * changed these columns since. Call it inside a transaction and `withoutForeignKeys`.
 */
export function alterTables(
  connection: Connection,
  plan: AlterPlan,
  onRows: (rows: number) => void = () => {},
): boolean {
  const known = runRule(connection, loadColumns(SQLITE, plan.collection))
  if (!plan.changes.every((change) => isStillDue(known, change))) return false
  const columns = plan.changes.map(({ column }) => column)
  runRule(connection, saveColumns(SQLITE, plan.collection, columns, plan.at))
  for (const kind of KINDS) {
    const table = tableName(plan.collection, kind)
    const changes = changesOf(connection, plan, kind)
    if (isRebuilt(changes)) rebuildTable(connection, table, changes, onRows)
    else for (const column of changes.added) addColumn(connection, table, column)
  }
  // From now on the views of their arrays tell lists from texts that read like one.
  const wide = plan.changes.filter(({ kind }) => kind === 'wide').map(({ column }) => column.name)
  if (wide.length > 0) {
    const keyColumns = keyColumnNames(splitKey(runRule(connection, knownKey(plan.collection)) ?? []))
    replaceViews(connection, { name: plan.collection, keyColumns }, wide)
  }
  return true
}

/** About how many rows SQLite reads for the plan. */
function rowsOf(connection: Connection, plan: AlterPlan): number {
  const counts = KINDS.map((kind) => {
    const last = connection.prepare(`SELECT max(_rowid_) FROM ${quoted(tableName(plan.collection, kind))}`)
    const rows = (last.pluck().get() as number | null) ?? 0
    const changes = changesOf(connection, plan, kind)
    return isRebuilt(changes) ? rows : rows * changes.added.length
  })
  return counts.reduce((sum, rows) => sum + rows, 0)
}

/** The plan in words: `orders: column id becomes TEXT, 3 columns are added`. */
function describePlan({ collection, changes }: AlterPlan): string {
  const types = changes
    .filter(({ kind }) => kind === 'type')
    .map(({ column }) => `column ${printable(column.name, 100)} becomes ${column.type}`)
  const added = changes.filter(({ kind }) => kind === 'add').length
  const adds = added === 0 ? [] : [`${counted(added, 'column')} ${added === 1 ? 'is' : 'are'} added`]
  return `${collection}: ${[...types, ...adds].join(', ')}`
}

function isStillDue(known: readonly Column[], { kind, column }: ColumnChange): boolean {
  const hasName = ({ name }: Column) => foldName(name) === foldName(column.name)
  if (kind === 'add')
    return !known.some((one) => hasName(one) || (one.path === column.path && one.role === column.role))
  return known.some((one) => hasName(one) && !one.wide && (kind === 'wide' || one.type === 'INTEGER'))
}

/** All three tables have the key columns, created as INTEGER before their type was known. */
function changesOf(
  connection: Connection,
  { collection, changes }: AlterPlan,
  kind: TableKind,
): TableChanges {
  const columns = changes.map(({ column }) => column).filter(({ role }) => kind === 'typed' || role === 'key')
  const types = runRule(connection, SQLITE.columnTypes(tableName(collection, kind)))
  const isAdded = new Set(changes.filter((change) => change.kind === 'add').map(({ column }) => column))
  const retyped = columns
    .filter((column) => !isAdded.has(column) || column.role === 'key')
    .filter(({ name, type }) => types.get(name) !== type)
  return {
    types: new Map(retyped.map(({ name, type }) => [name, type])),
    added: columns.filter((column) => isAdded.has(column) && column.role !== 'key'),
  }
}

function isRebuilt({ types, added }: TableChanges): boolean {
  return types.size > 0 || added.length > MANY_COLUMNS
}
