import { splitKey } from '../../columns/catalog.ts'
import { belongsTo } from '../../core/names.ts'
import { belonging, type Listed } from '../../core/reading.ts'
import type { Statements } from '../driver.ts'
import type { Cursor } from '../server/pool.ts'
import { keyNames } from '../tables/shape.ts'

export type Reading = Statements & Cursor

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
  const names = await sql.rows<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') ORDER BY relname`,
  )
  return belonging(
    (await collectionsOf(sql)).map(({ collection }) => collection),
    names.map(({ name }) => name),
  )
}

export async function collectionsOf(sql: Reading): Promise<Pick<Listed, 'collection' | 'keys'>[]> {
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
export function shownType(type: string): string {
  return TYPES[type] ?? 'TEXT'
}
