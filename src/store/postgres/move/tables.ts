import { keyColumnNames, splitKey, TABLE_KINDS, tableName } from '../../columns/catalog.ts'
import { foldName, freeName, type SqlValue } from '../../columns/column.ts'
import { arrayViewName, parentNames } from '../../columns/elements.ts'
import { ownColumns } from '../../core/declarations.ts'
import { quoted } from '../../core/sql.ts'
import {
  type ConfiguredCollection,
  knownCollections,
  loadArrayViews,
  loadColumns,
} from '../../core/tables.ts'
import { type Connection, runRule, SQLITE } from '../../sqlite/driver.ts'
import { POSTGRES, runRule as runOnServer, type Statements } from '../driver.ts'
import { POSTGRES_LIMITS } from '../storable.ts'

/** The tables that describe the tables and views of the collections: these are made by what they say. */
export const DESCRIBING = ['sync_collections', 'sync_known_columns', 'sync_view_columns']

/** Our own tables that are the same on both sides. */
export const OWN_TABLES = [
  ...DESCRIBING,
  'organizations',
  'sync_seq',
  'sync_jobs',
  'sync_runs',
  'sync_walks',
  'sync_pages',
  'sync_rejects',
  'sync_refreshed',
  'sync_missing',
  'sync_gates',
  'sync_shares',
  'sync_column_counts',
]

/** What is known to one process, or one machine, alone. */
const OF_A_PROCESS = ['owner', 'verifying', 'retry_since', 'retry_until', 'retry_error']

/** The column that keeps the order of rows; a file has their row ids for that. */
const SEQUENCE = 'sequence'

/** One of our own tables; `columns`: those of both sides, without the order of rows. */
interface OwnTable {
  name: string
  columns: string[]
  isOrdered: boolean
}

async function ownTables(server: Statements, connection: Connection): Promise<OwnTable[]> {
  const tables: OwnTable[] = []
  for (const name of OWN_TABLES) {
    const onServer = await runOnServer(server, POSTGRES.columnTypes(name))
    const inFile = runRule(connection, SQLITE.columnTypes(name))
    const columns = [...inFile.keys()].filter(
      (column) => onServer.has(column) && !OF_A_PROCESS.includes(column),
    )
    tables.push({ name, columns, isOrdered: onServer.has(SEQUENCE) })
  }
  return tables
}

/** A collection of the file. */
export interface MovedCollection {
  name: string
  key: readonly string[]
  /** What its table, and each view of an array, is called on the server, by their names in the file. */
  renamed: Map<string, Renamed>
  /** Columns that have another name on the server, or none, in words. */
  notices: string[]
}

/** A table or view on the server, with those of its columns that it has there, by their names in the file. */
interface Renamed {
  name: string
  columns: Map<string, string>
  /** Of a view: the column of its array. */
  array: string
}

export function movedCollections(connection: Connection): MovedCollection[] {
  return runRule(connection, knownCollections()).map((collection) => movedCollection(connection, collection))
}

/** Columns keep their names where PostgreSQL can have such names, since saved queries use them. Columns beyond its limit are left out. */
function movedCollection(connection: Connection, { name, key }: ConfiguredCollection): MovedCollection {
  const keyPaths = splitKey(key)
  const keys = keyColumnNames(keyPaths, POSTGRES_LIMITS)
  const values = runRule(connection, loadColumns(SQLITE, name)).filter(({ role }) => role !== 'key')
  const most = POSTGRES_LIMITS.mostColumns - keys.length
  const columns = new Map([
    ...keyColumnNames(keyPaths).map((from, index): [string, string] => [from, keys[index] ?? from]),
    ...freeNames(values.slice(0, most), [...POSTGRES_LIMITS.reserved, ...keys]),
  ])
  const left = values.slice(most).map((column) => column.name)
  const notices = [...columns]
    .filter(([from, to]) => from !== to)
    .map(([from, to]) => `the column ${from} is ${to} there: names have at most 63 bytes`)
  if (left.length > 0)
    notices.push(
      `${left.length} columns are beyond the ${POSTGRES_LIMITS.mostColumns} of a table there; their values stay in _json (${left.join(', ')})`,
    )
  const renamed = new Map([[name, { name, columns, array: '' }]])
  const parents = ['_organization_id', '_index', ...parentNames(keys, POSTGRES_LIMITS)]
  for (const view of runRule(connection, loadArrayViews(SQLITE, name))) {
    const array = columns.get(view.arrayColumn)
    if (array === undefined) continue
    const taken = [...renamed.values()].map((one) => one.name)
    const to = arrayViewName(name, array, taken, POSTGRES_LIMITS)
    renamed.set(view.name, { name: to, columns: new Map(freeNames(view.elements, parents)), array })
  }
  return { name, key, renamed, notices }
}

function freeNames(columns: readonly { name: string }[], reserved: readonly string[]): [string, string][] {
  const taken = new Set(reserved.map(foldName))
  return columns.map(({ name }) => {
    const free = freeName(name, (candidate) => taken.has(foldName(candidate)), POSTGRES_LIMITS)
    taken.add(foldName(free))
    return [name, free]
  })
}

/** A table that is copied row by row. */
export interface MovedTable {
  name: string
  /** Expressions of the file, and the columns of the server. */
  from: string[]
  to: string[]
  order: string
  /** Returns a row as the server has it; null for one that is not copied. */
  map: (row: SqlValue[]) => SqlValue[] | null
  /** Texts from this column on may be lists, from which views read elements; a key that looks like one is none. */
  listsFrom: number
}

/** All tables, those of the collections last. */
export async function movedTables(
  server: Statements,
  connection: Connection,
  collections: readonly MovedCollection[],
): Promise<MovedTable[]> {
  const names = new Map(collections.flatMap(({ renamed }) => [...renamed]))
  const own = (await ownTables(server, connection)).map(
    ({ name, columns, isOrdered }): MovedTable => ({
      name,
      from: [...columns.map(quoted), ...(isOrdered ? ['_rowid_'] : [])],
      to: [...columns, ...(isOrdered ? [SEQUENCE] : [])],
      order: isOrdered ? ' ORDER BY _rowid_' : '',
      map: columns.includes('column') ? (row) => renamedRow(row, columns, names) : (row) => row,
      listsFrom: Infinity,
    }),
  )
  return [...own, ...collections.flatMap(tablesOfCollection)]
}

/** A row about a column of a collection or view, with the names that they have on the server. */
function renamedRow(
  row: SqlValue[],
  columns: readonly string[],
  names: ReadonlyMap<string, Renamed>,
): SqlValue[] | null {
  const textIn = (column: string) => String(row[columns.indexOf(column)])
  const [of] = columns.filter((column) => column === 'collection' || column === 'view')
  const table = names.get(textIn(of ?? ''))
  const name = table?.columns.get(textIn('column'))
  if (!table || name === undefined) return null
  const news: Record<string, string> = { [of ?? '']: table.name, column: name, array_column: table.array }
  return row.map((value, index) => news[columns[index] ?? ''] ?? value)
}

function tablesOfCollection({ name, key, renamed }: MovedCollection): MovedTable[] {
  const names = renamed.get(name)?.columns ?? new Map<string, string>()
  const keys = keyColumnNames(splitKey(key))
  return TABLE_KINDS.map((kind) => {
    const own = ['_organization_id', ...ownColumns(kind)]
    const [isTyped, isHistory] = [kind === 'typed', kind === 'history']
    const moved = isTyped ? [...names.keys()] : keys
    return {
      name: tableName(name, kind),
      from: [...[...own, ...moved].map(quoted), ...(isHistory ? ['_rowid_'] : [])],
      to: [...own, ...moved.map((from) => names.get(from) ?? from), ...(isHistory ? ['_sequence'] : [])],
      order: '',
      map: (row) => row,
      // The names of the typed table begin with the keys.
      listsFrom: isTyped ? own.length + keys.length : Infinity,
    }
  })
}
