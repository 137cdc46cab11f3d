import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import {
  createCatalog,
  type KeyType,
  keyColumnNames,
  shapeOf,
  splitKey,
  type TableShape,
} from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import { type ArrayView, sentAtOf } from '../../columns/elements.ts'
import { arrayViewName, parentNames } from '../../columns/view-names.ts'
import { loadColumns } from '../../core/tables.ts'
import { runRule, SQLITE } from '../../sqlite/driver.ts'
import type { Connection } from '../../sqlite/sql.ts'
import { loadViews } from '../../sqlite/tables/array-views.ts'
import { POSTGRES } from '../driver.ts'
import { POSTGRES_LIMITS } from '../sql.ts'
import { type RenamedColumn, renamedColumns, renamedElements } from './columns.ts'

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
    notices: noticesOf(known, columns),
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
  return [...loadViews(connection, name).values()].flatMap((view) => {
    const array = columns.find(({ from }) => from === view.arrayColumn)?.column
    if (!array) return []
    const elements = renamedElements(view.elements, ['_organization_id', '_index', ...parents])
    names.push(arrayViewName(name, array.name, names, POSTGRES_LIMITS))
    const to = { name: names.at(-1) ?? '', arrayColumn: array.name, sentAt: sentAtOf(array), elements }
    return [{ from: view, to }]
  })
}

function noticesOf(known: readonly Column[], columns: readonly RenamedColumn<Column>[]): string[] {
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
