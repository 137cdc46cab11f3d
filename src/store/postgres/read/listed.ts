import { splitKey } from '../../columns/catalog.ts'
import { KINDS, tableName } from '../../core/sql.ts'
import type { Cursor } from '../server/pool.ts'
import type { Sql } from '../sql.ts'
import { changesViewName, keyNames } from '../tables/shape.ts'

export type Reading = Pick<Sql, 'rows'> & Cursor

/** A collection of the mirror. */
export interface ListedCollection {
  collection: string
  keys: readonly string[]
}

/** A table or view of a collection: `orders`, `orders_raw`, `orders__items`. */
export interface Listed extends ListedCollection {
  name: string
  isTable: boolean
  /** With PostgreSQL's types. */
  columns: readonly { name: string; type: string }[]
}

/** The order of rows where a mirror in a file has its own number of each. */
export const SEQUENCE = '_sequence'

/** The table or view of this name; null if it is none of a collection, or says nothing of organizations. */
export async function findListed(sql: Reading, name: string): Promise<Listed | null> {
  const record = (await collectionsOf(sql)).find(({ collection }) => belongsTo(collection, name))
  if (!record) return null
  const columns = await sql.rows<{ name: string; type: string; is_table: boolean }>(
    `
      SELECT attname AS name, format_type(atttypid, NULL) AS type, relkind = 'r' AS is_table
      FROM pg_attribute
      JOIN pg_class ON pg_class.oid = attrelid
      WHERE relnamespace = current_schema()::regnamespace AND relname = $1 AND relkind IN ('r', 'v')
        AND attnum > 0 AND NOT attisdropped
      ORDER BY attnum
    `,
    [name],
  )
  const isTable = columns.some((column) => column.is_table)
  const shown = columns.filter((column) => !isTable || column.name !== SEQUENCE)
  const isOfOrganizations = columns.some((column) => column.name === '_organization_id')
  return isOfOrganizations ? { name, isTable, ...record, columns: shown } : null
}

/** The tables and views of the collections, by name. */
export async function listedNames(sql: Reading): Promise<string[]> {
  const collections = await collectionsOf(sql)
  const names = await sql.rows<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') ORDER BY relname`,
  )
  return names
    .map(({ name }) => name)
    .filter((name) => collections.some(({ collection }) => belongsTo(collection, name)))
}

export async function collectionsOf(sql: Reading): Promise<ListedCollection[]> {
  const rows = await sql.rows<{ name: string; key: string }>(
    'SELECT name, key FROM sync_collections ORDER BY name',
  )
  return rows.map(({ name, key }) => ({
    collection: name,
    keys: keyNames(splitKey(JSON.parse(key) as string[])),
  }))
}

/** Those of the configuration first: one that left it may have the name of another. */
export function organizationsOf(sql: Reading): Promise<{ id: string; name: string }[]> {
  return sql.rows('SELECT id, name FROM organizations ORDER BY configured DESC, name, id')
}

export function belongsTo(collection: string, name: string): boolean {
  const own = [...KINDS.map((kind) => tableName(collection, kind)), changesViewName(collection)]
  // No collection's name has two underscores.
  return own.includes(name) || name.startsWith(`${collection}__`)
}

/** As in the mirror's other kind. */
const TYPES: Readonly<Record<string, string>> = {
  smallint: 'INTEGER',
  integer: 'INTEGER',
  bigint: 'INTEGER',
  real: 'REAL',
  'double precision': 'REAL',
  'timestamp with time zone': 'TIME',
}

/** `INTEGER`, `REAL`, `TEXT`, or `TIME` for our own times. */
export function typeOf(type: string): string {
  return TYPES[type] ?? 'TEXT'
}
