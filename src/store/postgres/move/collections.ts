import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import {
  createCatalog,
  type KeyPaths,
  type KeyType,
  keyColumnNames,
  shapeOf,
  splitKey,
  type TableShape,
} from '../../columns/catalog.ts'
import { type Column, foldName, freeName } from '../../columns/column.ts'
import { type ArrayView, arrayViewName, parentNames, sentAtOf } from '../../columns/elements.ts'
import { loadArrayViews, loadColumns } from '../../core/tables.ts'
import { runRule, SQLITE } from '../../sqlite/driver.ts'
import type { Connection } from '../../sqlite/sql.ts'
import { POSTGRES } from '../driver.ts'
import { POSTGRES_LIMITS } from '../sql.ts'
import { keyNames } from '../tables/views.ts'

/** A collection of the file, as its tables will be on the server. */
export interface MovedCollection {
  name: string
  shape: TableShape
  keys: { from: string; to: string; type: KeyType }[]
  columns: RenamedColumn<Column>[]
  views: { from: ArrayView; to: ArrayView }[]
  /** Columns that have another name on the server, or none, in words. */
  notices: string[]
}

/** The collections of the file. Throws MirrorError for a name that PostgreSQL cannot have. */
export function movedCollections(connection: Connection): MovedCollection[] {
  const rows = connection.prepare('SELECT name, key FROM sync_collections ORDER BY name').all()
  return (rows as { name: string; key: string }[]).map(({ name, key }) =>
    movedCollection(connection, name, JSON.parse(key) as string[]),
  )
}

function movedCollection(connection: Connection, name: string, key: readonly string[]): MovedCollection {
  if (Buffer.byteLength(name) > POSTGRES.longestCollection)
    throw new MirrorError(
      `the collection ${name} has a name that is too long for tables of PostgreSQL (at most ${POSTGRES.longestCollection} bytes), so this mirror cannot be moved`,
    )
  const keyPaths = splitKey(key)
  const known = runRule(connection, loadColumns(SQLITE, name))
  const columns = renamedColumns(known, keyPaths)
  const catalog = createCatalog(
    columns.map(({ column }) => column),
    keyPaths,
    false,
    POSTGRES_LIMITS,
  )
  const shape = shapeOf(name, catalog)
  const keys = keyColumnNames(keyPaths).map((from, index) => ({
    from,
    to: shape.keyColumns[index] ?? from,
    type: shape.keyTypes[index] ?? 'TEXT',
  }))
  return {
    name,
    shape,
    keys,
    columns,
    views: viewsOf(connection, name, shape, columns),
    notices: renamingNotices(known, columns),
  }
}

function viewsOf(
  connection: Connection,
  name: string,
  shape: TableShape,
  columns: readonly RenamedColumn<Column>[],
): MovedCollection['views'] {
  const parents = parentNames(shape.keyColumns, POSTGRES_LIMITS)
  const names: string[] = []
  return runRule(connection, loadArrayViews(SQLITE, name)).flatMap((view) => {
    const array = columns.find(({ from }) => from === view.arrayColumn)?.column
    if (!array) return []
    const elements = renamedElements(view.elements, ['_organization_id', '_index', ...parents])
    names.push(arrayViewName(name, array.name, names, POSTGRES_LIMITS))
    const to = { name: names.at(-1) ?? '', arrayColumn: array.name, sentAt: sentAtOf(array), elements }
    return [{ from: view, to }]
  })
}

function renamingNotices(known: readonly Column[], columns: readonly RenamedColumn<Column>[]): string[] {
  const renamed = columns.filter(({ from, column }) => from !== column.name)
  const left = known.slice(columns.length)
  return [
    ...renamed.map(
      ({ from, column }) => `the column ${from} is ${column.name} there: names have at most 63 bytes`,
    ),
    ...(left.length > 0
      ? [
          `${left.length} columns are beyond the ${POSTGRES_LIMITS.mostColumns} of a table there; their values stay in _json (${left.map(({ name }) => name).join(', ')})`,
        ]
      : []),
  ]
}

/** A text that is another one when the tables have to be made in another way. */
export function planOf(collections: readonly MovedCollection[]): string {
  const all = collections.map(({ shape, views }) => ({ shape, views }))
  return createHash('sha256').update(JSON.stringify(all)).digest('hex')
}

// Columns keep their names, since saved queries have them, where PostgreSQL can have such names.

/** A column of the file, and what it is called on the server. */
export interface RenamedColumn<C extends { name: string }> {
  from: string
  column: C
}

/** The columns of a collection on the server. Those beyond its limit are left out: their values stay in `_json`. */
function renamedColumns(columns: readonly Column[], keyPaths: KeyPaths): RenamedColumn<Column>[] {
  const fileKeys = keyColumnNames(keyPaths)
  const serverKeys = keyNames(keyPaths)
  const taken = new Set([...POSTGRES_LIMITS.reserved, ...serverKeys].map(foldName))
  const missingKeys = serverKeys.length - columns.filter(({ role }) => role === 'key').length
  return columns.slice(0, POSTGRES_LIMITS.mostColumns - missingKeys).map((column) => {
    const name =
      column.role === 'key'
        ? (serverKeys[fileKeys.indexOf(column.name)] ?? column.name)
        : freeOne(column.name, taken)
    return { from: column.name, column: { ...column, name } }
  })
}

/** The columns of a view of an array. */
function renamedElements(elements: readonly Column[], parents: readonly string[]): Column[] {
  const taken = new Set(parents.map(foldName))
  return elements.map((element) => ({ ...element, name: freeOne(element.name, taken) }))
}

function freeOne(name: string, taken: Set<string>): string {
  const free = freeName(name, (candidate) => taken.has(foldName(candidate)), POSTGRES_LIMITS)
  taken.add(foldName(free))
  return free
}
