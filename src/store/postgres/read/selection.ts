import { splitKey } from '../../columns/catalog.ts'
import { parentNames } from '../../columns/elements.ts'
import { belongsTo, tableName } from '../../core/names.ts'
import {
  belonging,
  isOfChanges,
  type Listed,
  rowsOf,
  type SelectedRows,
  type Selection,
  type SentItem,
  selectedColumns,
  sentColumns,
  sentItem,
  seqWindows,
  type Value,
  withinWindow,
} from '../../core/reading.ts'
import { numberedValues, type Statements } from '../driver.ts'
import type { Cursor } from '../server/pool.ts'
import { POSTGRES_LIMITS, quoted } from '../sql.ts'
import { keyNames } from '../tables/views.ts'
import { openCursor, type StreamedRows } from './query.ts'

export type Reading = Statements & Cursor

/** The order of rows where a mirror in a file has its own number of each. */
const SEQUENCE = '_sequence'

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

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export async function selectRows(sql: Reading, listed: Listed, selection: Selection): Promise<StreamedRows> {
  const { columns, expressions } = selectedColumns(listed)
  const query = queryOf(listed, selection)
  const select = `SELECT ${expressions.join(', ')}`
  const { sinceSeq = null } = selection
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ type }) => shownType(type)),
    batches:
      sinceSeq === null
        ? (await open(sql, select, query)).batches
        : inWindows(sql, select, query, BigInt(sinceSeq)),
  }
}

function open(sql: Reading, select: string, { from, where, order, values }: Query): Promise<StreamedRows> {
  return openCursor(sql, ...numberedValues(`${select} ${from} WHERE ${where} ORDER BY ${order}`, values))
}

async function* inWindows(
  sql: Reading,
  select: string,
  query: Query,
  since: bigint,
): AsyncIterable<Value[][]> {
  const windows = seqWindows(since)
  for (let next = windows.next(); !next.done; ) {
    const { ask, most, ...window } = next.value
    const where = `${query.where} AND ${withinWindow(window)}`
    if (ask === 'read') {
      yield* (await open(sql, select, { ...query, where })).batches
      next = windows.next(0)
    } else {
      const count = `SELECT count(*) FROM (SELECT 1 ${query.from} WHERE ${where} LIMIT ${most}) AS found`
      const { rows } = await sql.arrays(...numberedValues(count, query.values))
      next = windows.next(Number(rows[0]?.[0]))
    }
  }
}

/** The items of a collection as they were sent. */
export async function selectItems(
  sql: Reading,
  { collection, keys }: Listed,
  selection: Selection,
): Promise<AsyncIterable<SentItem[]>> {
  const raw = await findListed(sql, tableName(collection, 'raw'))
  if (!raw) throw new Error(`${collection} has no table of its items`)
  const { batches } = await open(sql, `SELECT ${sentColumns(keys)}`, queryOf(raw, selection))
  return itemsOf(batches)
}

async function* itemsOf(batches: AsyncIterable<Value[][]>): AsyncIterable<SentItem[]> {
  for await (const rows of batches as AsyncIterable<string[][]>) yield rows.map(sentItem)
}

interface Query extends SelectedRows {
  order: string
}

function queryOf(listed: Listed, selection: Selection): Query {
  const { name, collection, keys, columns } = listed
  const parents = parentNames(keys, POSTGRES_LIMITS)
  const isHistory = name === tableName(collection, 'history')
  const time = isOfChanges(listed) ? ['at'] : []
  const first = selection.sinceSeq == null ? [] : ['seq']
  const order = [...first, '_organization_id', ...keys, ...parents, '_index', SEQUENCE, ...time]
    .filter((one) => columns.some((column) => column.name === one) || (isHistory && one === SEQUENCE))
    .map((one) => `x.${quoted(one)}`)
  return { ...rowsOf(listed, selection, POSTGRES_LIMITS), order: order.join(', ') }
}
