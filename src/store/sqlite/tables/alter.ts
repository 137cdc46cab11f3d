import { counted, printable } from '../../../text.ts'
import type { Column, ColumnChange } from '../../columns/column.ts'
import { foldName } from '../../columns/column.ts'
import type { Connection } from '../file/open.ts'
import { quoted } from '../sql.ts'
import { createRecorder, loadColumns } from './column-records.ts'
import { KINDS, type TableKind, tableName } from './declarations.ts'
import { addColumn, rebuildTable, type TableChanges, typeOfColumn } from './rebuild-table.ts'

/** What has to become of a collection's columns before rows can be written. */
export interface AlterPlan {
  collection: string
  changes: readonly ColumnChange[]
  /** For `sync_columns`. */
  at: string
}

/** To copy a table takes as long as to add so many columns to it. */
const MANY_COLUMNS = 6

/**
 * Makes the tables as the plan says, and notes it in `sync_columns`. Inside a transaction, within `withoutForeignKeys`. Returns
 * false, and changes nothing, where another process changed these columns since the plan was made.
 */
export function alterTables(
  connection: Connection,
  plan: AlterPlan,
  onRows: (rows: number) => void = () => {},
): boolean {
  const known = loadColumns(connection, plan.collection)
  if (!plan.changes.every((change) => isStillDue(known, change))) return false
  const record = createRecorder(connection, plan.collection)
  for (const { column } of plan.changes) record.column(column, plan.at)
  for (const kind of KINDS) {
    const table = tableName(plan.collection, kind)
    const changes = changesOf(connection, plan, kind)
    if (isRebuilt(changes)) rebuildTable(connection, table, changes, onRows)
    else for (const column of changes.added) addColumn(connection, table, column)
  }
  return true
}

/** About how many rows SQLite goes through for the plan. */
export function rowsOf(connection: Connection, plan: AlterPlan): number {
  const counts = KINDS.map((kind) => {
    const last = connection.prepare(`SELECT max(_rowid_) FROM ${quoted(tableName(plan.collection, kind))}`)
    const rows = (last.pluck().get() as number | null) ?? 0
    const changes = changesOf(connection, plan, kind)
    return isRebuilt(changes) ? rows : rows * changes.added.length
  })
  return counts.reduce((sum, rows) => sum + rows, 0)
}

/** The plan in words: `orders: column id becomes TEXT, 3 columns are added`. */
export function describePlan({ collection, changes }: AlterPlan): string {
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
  return known.some((one) => hasName(one) && one.type === 'INTEGER' && !one.wide)
}

/** A key column is in all three tables; it was made with them, as INTEGER, before its type was known. */
function changesOf(
  connection: Connection,
  { collection, changes }: AlterPlan,
  kind: TableKind,
): TableChanges {
  const columns = changes.map(({ column }) => column).filter(({ role }) => kind === 'typed' || role === 'key')
  const typeNow = ({ name }: Column) => typeOfColumn(connection, tableName(collection, kind), name)
  const isAdded = new Set(changes.filter((change) => change.kind === 'add').map(({ column }) => column))
  const types = columns
    .filter((column) => !isAdded.has(column) || column.role === 'key')
    .filter((column) => typeNow(column) !== column.type)
  return {
    types: new Map(types.map(({ name, type }) => [name, type])),
    added: columns.filter((column) => isAdded.has(column) && column.role !== 'key'),
  }
}

function isRebuilt({ types, added }: TableChanges): boolean {
  return types.size > 0 || added.length > MANY_COLUMNS
}
