import { UsageError } from '../../../errors.ts'
import { splitKey } from '../../columns/catalog.ts'
import type { Value } from '../../sqlite/read/rows.ts'
import type { Selection, SentItem, TypedRows } from '../../sqlite/read/selection.ts'
import type { Cursor } from '../server/pool.ts'
import { cutName, literal, quoted, type Sql } from '../sql.ts'
import { changesViewName } from '../tables/changes-view.ts'
import { KINDS, keyNames, tableName } from '../tables/shape.ts'

type Reading = Pick<Sql, 'rows'> & Cursor

/** A table or view of a collection: `orders`, `orders_raw`, `orders__items`. */
interface Listed {
  name: string
  collection: string
  keys: readonly string[]
  columns: readonly { name: string; type: string }[]
}

/** The table or view of this name; null if it is none of a collection, or says nothing of organizations. */
export async function findListed(sql: Reading, name: string): Promise<Listed | null> {
  const record = (await collectionsOf(sql)).find(({ collection }) => belongsTo(collection, name))
  if (!record) return null
  const columns = await sql.rows<{ name: string; type: string }>(
    `
      SELECT attname AS name, format_type(atttypid, NULL) AS type
      FROM pg_attribute
      WHERE attrelid = to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1)) AND attnum > 0 AND NOT attisdropped
      ORDER BY attnum
    `,
    [name],
  )
  const isOfOrganizations = columns.some((column) => column.name === '_organization_id')
  return isOfOrganizations ? { name, ...record, columns } : null
}

/** The tables and views of the collections, by name. */
export async function listedNames(sql: Reading): Promise<string[]> {
  const collections = await collectionsOf(sql)
  const names = await sql.rows<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') ORDER BY relname",
  )
  return names
    .map(({ name }) => name)
    .filter((name) => collections.some(({ collection }) => belongsTo(collection, name)))
}

async function collectionsOf(sql: Reading): Promise<Pick<Listed, 'collection' | 'keys'>[]> {
  const rows = await sql.rows<{ name: string; key: string }>(
    'SELECT name, key FROM sync_collections ORDER BY name',
  )
  return rows.map(({ name, key }) => ({
    collection: name,
    keys: keyNames(splitKey(JSON.parse(key) as string[])),
  }))
}

function belongsTo(collection: string, name: string): boolean {
  const own = [...KINDS.map((kind) => tableName(collection, kind)), changesViewName(collection)]
  // No collection's name has two underscores.
  return own.includes(name) || name.startsWith(`${collection}__`)
}

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export async function selectRows(sql: Reading, listed: Listed, selection: Selection): Promise<TypedRows> {
  const columns = listed.columns.flatMap((column) =>
    column.name === '_organization_id' ? [column, NAME_COLUMN] : [column],
  )
  const expressions = columns.map((column) =>
    column === NAME_COLUMN ? 'o."name"' : `x.${quoted(column.name)}`,
  )
  const { rows } = await sql.arrays(`SELECT ${expressions.join(', ')} ${fromWhere(listed, selection)}`)
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ type }) => TYPES[type] ?? 'TEXT'),
    rows: rows as Value[][],
  }
}

const NAME_COLUMN = { name: '_organization', type: 'text' }

/** As in the mirror's other kind. */
const TYPES: Readonly<Record<string, string>> = {
  smallint: 'INTEGER',
  integer: 'INTEGER',
  bigint: 'INTEGER',
  real: 'REAL',
  'double precision': 'REAL',
  'timestamp with time zone': 'TIME',
}

/** The items of a collection as they were sent. */
export async function selectItems(
  sql: Reading,
  { collection, keys }: Listed,
  selection: Selection,
): Promise<SentItem[]> {
  const raw = await findListed(sql, tableName(collection, 'raw'))
  if (!raw) throw new Error(`${collection} has no table of its items`)
  const own = ['x."_organization_id"', 'o."name"', 'x."_first_seen_at"', 'x."_changed_at"', 'x."_json"']
  const shown = [...own, ...keys.map((key) => `x.${quoted(key)}`)].join(', ')
  const { rows } = await sql.arrays(`SELECT ${shown} ${fromWhere(raw, selection)}`)
  return (rows as string[][]).map(
    ([organizationId = '', organization = null, firstSeenAt = '', changedAt = '', json = '', ...key]) => ({
      organizationId,
      organization,
      key,
      firstSeenAt,
      changedAt,
      json,
    }),
  )
}

/** The column of a view of elements that has the key of their row. */
function parentOf(key: string): string {
  return cutName(`_parent_${key}`)
}

function fromWhere(listed: Listed, { organizationIds, since }: Selection): string {
  const { name, keys, columns } = listed
  const ids = (organizationIds ?? []).map(literal).join(', ')
  const conditions = [
    ...(organizationIds ? [`x."_organization_id" IN (${ids})`] : []),
    ...(since === null ? [] : [sinceSql(listed, `${literal(since)}::timestamptz`)]),
  ]
  const parents = keys.map(parentOf)
  const order = ['_organization_id', ...keys, ...parents, '_index', '_sequence']
    .filter((one) => columns.some((column) => column.name === one))
    .map((one) => `x.${quoted(one)}`)
  return `
    FROM ${quoted(name)} AS x
    LEFT JOIN organizations AS o ON o.id = x."_organization_id"
    WHERE ${conditions.join(' AND ') || 'true'}
    ORDER BY ${order.join(', ')}
  `
}

/** By which time a row has changed: its own, an event's, a version's end, or that of the row an element belongs to. */
function sinceSql({ name, collection, keys, columns }: Listed, since: string): string {
  const has = (one: string) => columns.some((column) => column.name === one)
  const own = ['_changed_at', ...(name === changesViewName(collection) ? ['at'] : []), '_valid_to']
  const time = own.find(has)
  if (time !== undefined) return `x.${quoted(time)} >= ${since}`
  if (!keys.every((key) => has(parentOf(key)))) throw new UsageError(`--since: ${name} has no time of change`)
  const same = keys.map((key) => `p.${quoted(key)} = x.${quoted(parentOf(key))}`).join(' AND ')
  return `EXISTS (SELECT 1 FROM ${quoted(collection)} AS p WHERE p."_organization_id" = x."_organization_id" AND ${same} AND p."_changed_at" >= ${since})`
}
