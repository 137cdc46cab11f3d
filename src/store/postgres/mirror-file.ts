import {
  keyColumnNames,
  shapeOf,
  splitKey,
  TABLE_KINDS,
  type TableShape,
  tableName,
} from '../columns/catalog.ts'
import type { SqlValue } from '../columns/column.ts'
import { replaceViews } from '../core/array-views.ts'
import { ensureTables } from '../core/collections.ts'
import { ownColumns } from '../core/declarations.ts'
import { quoted } from '../core/sql.ts'
import { knownCollections, loadCatalog } from '../core/tables.ts'
import { type Connection, runRule, SQLITE } from '../sqlite/driver.ts'
import { openForWriting } from '../sqlite/file/open-for-writing.ts'
import { ALTERATION } from '../sqlite/tables/alter.ts'
import { runRule as runOnServer } from './driver.ts'
import { ownTables } from './move/tables.ts'
import { openCursor } from './read/query.ts'
import type { Cursor, Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'
import { POSTGRES_LIMITS } from './storable.ts'

/** Internal tables that no copy holds. */
const WORKINGS = ['sync_pages', 'sync_refreshed', 'sync_missing', 'sync_gates', 'sync_shares', 'sync_seq']

interface Copied {
  /** On both sides. */
  table: string
  from: readonly string[]
  /** Names in the file, where they differ. */
  to?: readonly string[]
  order?: string
  map?: (row: SqlValue[]) => SqlValue[]
}

/**
 * Writes what readers need of the mirror into a file that is a mirror of its own, from which a copy is made as from any
 * other. All is of one moment. `begin` is called before that moment, and again if the server went away meanwhile: it
 * makes room for the file. Throws MirrorError.
 */
export function writeMirrorFile(server: Server, file: string, begin: () => void): Promise<void> {
  return server.reading(async (sql) => {
    begin()
    const connection = openForWriting(file)
    try {
      // Nobody reads a half of it.
      connection.pragma('synchronous = OFF')
      const copy = copier(sql, connection)
      const collections = await runOnServer(sql, knownCollections())
      const keys = new Map(collections.map(({ name, key }) => [name, splitKey(key)]))
      for (const { name, columns, isOrdered } of await ownTables(sql, connection))
        if (!WORKINGS.includes(name))
          await copy({
            table: name,
            from: columns,
            ...(isOrdered ? { order: 'sequence' } : {}),
            ...(columns.includes('column') ? { map: (row) => withKeysOfFile(row, columns, keys) } : {}),
          })
      for (const collection of collections) {
        runRule(connection, ensureTables(ALTERATION, collection))
        const shape = shapeOf(collection.name, runRule(connection, loadCatalog(SQLITE, collection)))
        runRule(connection, replaceViews(ALTERATION, shape))
        await copyCollection(copy, shape, keyColumnNames(splitKey(collection.key), POSTGRES_LIMITS))
      }
    } finally {
      connection.close()
    }
  })
}

/** A key may be called otherwise on the server, where some names are taken. */
function withKeysOfFile(
  row: SqlValue[],
  columns: readonly string[],
  keys: ReadonlyMap<string, string[][]>,
): SqlValue[] {
  const at = columns.indexOf('column')
  const paths = keys.get(String(row[columns.indexOf('collection')])) ?? []
  const key = keyColumnNames(paths, POSTGRES_LIMITS).indexOf(String(row[at]))
  return key === -1 ? row : row.with(at, keyColumnNames(paths)[key] ?? null)
}

/** `keys`: the names of the key columns on the server. */
async function copyCollection(
  copy: (copied: Copied) => Promise<void>,
  { name, keyColumns, columns }: TableShape,
  keys: readonly string[],
): Promise<void> {
  for (const kind of TABLE_KINDS) {
    const own = ownColumns(kind)
    if (kind === 'typed') own.push(...columns.map((column) => column.name))
    const from = ['_organization_id', ...keys]
    await copy({
      table: tableName(name, kind),
      from: [...from, ...own],
      to: ['_organization_id', ...keyColumns, ...own],
      order: kind === 'history' ? '_sequence' : from.map(quoted).join(', '),
    })
  }
}

/** Returns a function that copies a table, a batch at a time. */
function copier(sql: Sql & Cursor, connection: Connection): (copied: Copied) => Promise<void> {
  return async ({ table, from, to = from, order, map = (row) => row }) => {
    const names = to.map(quoted).join(', ')
    const marks = to.map(() => '?').join(', ')
    const insert = connection.prepare(`INSERT INTO ${quoted(table)} (${names}) VALUES (${marks})`)
    const write = connection.transaction((rows: SqlValue[][]) => {
      for (const row of rows) insert.run(map(row))
    })
    const select = `SELECT ${from.map(quoted).join(', ')} FROM ${quoted(table)}${order ? ` ORDER BY ${order}` : ''}`
    const { batches } = await openCursor(sql, select)
    for await (const rows of batches) write(rows as SqlValue[][])
  }
}
