import type { KeyType } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import type { ElementColumn } from '../../columns/elements.ts'
import { viewSql } from '../../columns/view.ts'
import type { Connection } from '../file/open.ts'
import { quoted } from '../sql.ts'

/** What the tables of a collection are made from. */
export interface TableShape {
  name: string
  keyColumns: readonly string[]
  keyTypes: readonly KeyType[]
  /** The discovered columns but the keys, in the order they came. */
  columns: readonly Column[]
}

/** Our own columns of each of a collection's tables, around the key. */
const OWN = {
  typed: {
    before: [
      '"_organization_id" TEXT NOT NULL',
      '"_first_seen_at" TEXT NOT NULL',
      '"_changed_at" TEXT NOT NULL',
    ],
    after: [],
  },
  raw: {
    before: ['"_organization_id" TEXT NOT NULL'],
    after: ['"_json" TEXT NOT NULL', '"_first_seen_at" TEXT NOT NULL', '"_changed_at" TEXT NOT NULL'],
  },
  history: {
    before: ['"_organization_id" TEXT NOT NULL'],
    after: [
      '"_json" TEXT NOT NULL',
      '"_valid_from" TEXT NOT NULL',
      '"_valid_to" TEXT NOT NULL',
      '"_reason" TEXT NOT NULL',
    ],
  },
}

export type TableKind = keyof typeof OWN

export const KINDS: readonly TableKind[] = ['typed', 'raw', 'history']

const BY_KEY = '_history_by_key'
const BY_END = '_history_by_end'

/** How the names of what `createMissingTables` makes end, beside the table of the collection's own name. */
const MADE_ENDS = ['_raw', '_history', BY_KEY, BY_END]

/**
 * How the names end of all that may stand in the mirror for a collection, the views of its arrays apart. SQLite keeps tables,
 * views and indexes in one list of names.
 */
export const NAME_ENDS: readonly string[] = [...MADE_ENDS, '_changes']

/** The names of the tables and indexes of a collection. */
export function namesOfTables(collection: string): string[] {
  return ['', ...MADE_ENDS].map((end) => collection + end)
}

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

/** The text that declared a table; undefined where there is none of that name. */
export function declarationOf(connection: Connection, table: string): string | undefined {
  const schema = connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck()
  return schema.get(table) as string | undefined
}

/** Makes the tables of a collection, those of the three that are not there. */
export function createMissingTables(connection: Connection, shape: TableShape): void {
  for (const kind of KINDS) connection.exec(createSql(shape, kind))
  connection.exec(historyIndexSql(shape))
  indexHistoryEnds(connection, shape.name)
}

/** Has old versions be found by their end; a history from before there was such an index gets it now. */
export function indexHistoryEnds(connection: Connection, collection: string): void {
  const [index, history] = [collection + BY_END, tableName(collection, 'history')].map(quoted)
  connection.exec(`CREATE INDEX IF NOT EXISTS ${index} ON ${history} ("_organization_id", "_valid_to")`)
}

function createSql(shape: TableShape, kind: TableKind): string {
  const keys = shape.keyColumns.map((column, index) => `${quoted(column)} ${shape.keyTypes[index]} NOT NULL`)
  const discovered =
    kind === 'typed' ? shape.columns.map((column) => `${quoted(column.name)} ${column.type}`) : []
  const primary = ['_organization_id', ...shape.keyColumns].map(quoted).join(', ')
  const constraint = kind === 'history' ? [] : [`PRIMARY KEY (${primary})`]
  const lines = [...OWN[kind].before, ...keys, ...OWN[kind].after, ...discovered, ...constraint]
  return `CREATE TABLE IF NOT EXISTS ${quoted(tableName(shape.name, kind))} (\n  ${lines.join(',\n  ')}\n) STRICT`
}

function historyIndexSql(shape: TableShape): string {
  const columns = ['_organization_id', ...shape.keyColumns, '_valid_to'].map(quoted).join(', ')
  return `CREATE INDEX IF NOT EXISTS ${quoted(shape.name + BY_KEY)} ON ${quoted(tableName(shape.name, 'history'))} (${columns})`
}

/** A view of an array of objects. */
export interface ArrayView {
  name: string
  arrayColumn: string
  elements: readonly ElementColumn[]
}

export function replaceView(connection: Connection, shape: TableShape, view: ArrayView): void {
  connection.exec(`DROP VIEW IF EXISTS ${quoted(view.name)}`)
  connection.exec(
    viewSql({
      view: view.name,
      table: shape.name,
      keyColumns: shape.keyColumns,
      arrayColumn: view.arrayColumn,
      elements: view.elements,
    }),
  )
}
