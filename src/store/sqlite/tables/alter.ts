import { counted, printable } from '../../../text.ts'
import { type Column, type ColumnChange, foldName } from '../../columns/column.ts'
import { addColumnSql } from '../../core/declarations.ts'
import type { Alteration } from '../../core/fit.ts'
import { KINDS, type TableKind, tableName } from '../../core/names.ts'
import { exec, one, quoted, type Rule } from '../../core/sql.ts'
import { loadColumns, saveColumns } from '../../core/tables.ts'
import { SQLITE } from '../driver.ts'
import { ensureChangesView } from './changes-view.ts'
import { helpView } from './help-view.ts'
import { belongingsOf, rebuildTable, type TableChanges } from './rebuild-table.ts'
import { kindSql, viewSql } from './view.ts'

/** Runs within `withoutForeignKeys`. */
export const ALTERATION: Alteration = {
  dialect: SQLITE,
  *alterTables({ name }, changes) {
    yield* alterTables(name, changes)
    return null
  },
  furtherViews: [helpView()],
  makeView: (name, select) => makeView(name, `CREATE VIEW ${quoted(name)} AS\n${select}`),
  replaceView: ({ name: table, keyColumns }, view) =>
    makeView(view.name, viewSql(view, { table, keyColumns })),
  *replaceChangesView(shape) {
    yield* ensureChangesView(shape)
  },
  beginsLikeList: (column) => `ltrim(t.${quoted(column)}, char(32, 9, 10, 13)) GLOB '[[]*'`,
  hasText: (path) => `${kindSql(path)} = 'text'`,
  // SQLite changes a table whatever depends on it.
  *tried(begin) {
    yield* begin()
    return null
  },
}

function* makeView(name: string, sql: string): Rule<void> {
  // A user's INSTEAD OF trigger would go with the view.
  const triggers = yield* belongingsOf(name)
  yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`, sql, ...triggers])
}

/** Column changes for which a table is read. */
export interface AlterPlan {
  collection: string
  changes: readonly ColumnChange[]
  /** For `sync_columns`. */
  at: string
}

/** Copying a table takes as long as adding so many columns to it. */
const MANY_COLUMNS = 6

/** Changes the tables by a plan, and notes the columns. Returns false, and changes nothing, if another process changed these columns since. */
export function* alterAsPlanned(
  { collection, changes, at }: AlterPlan,
  onRows: (rows: number) => void,
): Rule<boolean> {
  const known = yield* loadColumns(SQLITE, collection)
  if (!changes.every((change) => isStillDue(known, change))) return false
  yield* alterTables(collection, changes, onRows)
  const columns = changes.map(({ column }) => column)
  yield* saveColumns(SQLITE, collection, columns, at)
  return true
}

function* alterTables(
  collection: string,
  changes: readonly ColumnChange[],
  onRows: (rows: number) => void = () => {},
): Rule<void> {
  for (const kind of KINDS) {
    const table = tableName(collection, kind)
    const ofTable = yield* changesOf(collection, changes, kind)
    if (isRebuilt(ofTable)) yield* rebuildTable(table, ofTable, onRows)
    // SQLite reads every row of a STRICT table for each.
    else yield* exec(ofTable.added.flatMap((column) => addColumnSql(SQLITE, table, column)))
  }
}

/** About how many rows SQLite reads for the changes. */
export function* rowsToRead(collection: string, changes: readonly ColumnChange[]): Rule<number> {
  let sum = 0
  for (const kind of KINDS) {
    const text = `SELECT max(_rowid_) AS rows FROM ${quoted(tableName(collection, kind))}`
    const rows = (yield* one<{ rows: number | null }>(text))?.rows ?? 0
    const ofTable = yield* changesOf(collection, changes, kind)
    sum += isRebuilt(ofTable) ? rows : rows * ofTable.added.length
  }
  return sum
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
    return !known.some(
      (other) => hasName(other) || (other.path === column.path && other.role === column.role),
    )
  return known.some((other) => hasName(other) && !other.wide && other.type === 'INTEGER')
}

/** All three tables have the key columns, created as INTEGER before their type was known. */
function* changesOf(
  collection: string,
  changes: readonly ColumnChange[],
  kind: TableKind,
): Rule<TableChanges> {
  const columns = changes.map(({ column }) => column).filter(({ role }) => kind === 'typed' || role === 'key')
  const types = yield* SQLITE.columnTypes(tableName(collection, kind))
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
