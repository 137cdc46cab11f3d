import { packTexts } from '../../../json/value.ts'
import type { KeyPart, ListedItem, RowTimes, StoredItem } from '../../../sync/items.ts'
import type { Job } from '../../../sync/types.ts'
import { type KeyType, keyColumnNames, keyPathsOf } from '../../columns/catalog.ts'
import type { Keys } from '../../core/sql.ts'
import { SQLITE } from '../driver.ts'
import { type Connection, castParameter, quoted } from '../sql.ts'
import { tableName, typeOfColumn } from './declarations.ts'

/** Reads what is stored of a job's items. */
export interface Lookup {
  items(job: Job, items: readonly ListedItem[]): StoredItem[]
  /** See `Store.liveKeys`. */
  liveKeys(job: Job, from: string | null): { ids: string[]; next: string | null }
}

/** The most ids that one call of `liveKeys` returns. */
const KEYS_BATCH = 4000

/** The values of a row's key columns: whole numbers are bigint. */
type KeyValues = readonly (string | bigint)[]

interface RawRows {
  columns: Keys
  /** The rows with these keys, by index in the list. */
  rows(organizationId: string, keys: readonly (readonly string[] | null)[]): Map<number, StoredRow>
  keysAfter(organizationId: string, last: KeyValues | null): KeyValues[]
}

interface StoredRow {
  text: string
  times: RowTimes
}

export function createLookup(connection: Connection): Lookup {
  // Another process may change the type of a key column.
  const cache = createSchemaCache<RawRows | null>(connection)
  const findReject = connection.prepare(
    'SELECT 1 FROM sync_rejects WHERE organization_id = ? AND collection = ? AND fingerprint = ?',
  )

  function rowsOf(job: Job): RawRows | null {
    return cache.get(job.collection.name, () => openRawRows(connection, job))
  }

  return {
    items(job, items) {
      const { organization, collection } = job
      const rows = rowsOf(job)
      const stored = rows?.rows(
        organization.id,
        items.map((listed) => keyTexts(listed, rows.columns)),
      )
      return items.map((listed, index): StoredItem => {
        if ('reject' in listed) {
          const found = findReject.get(organization.id, collection.name, listed.id)
          return found === undefined ? { state: 'absent' } : { state: 'same', times: null }
        }
        const row = stored?.get(index)
        if (!row) return { state: 'absent' }
        const { text, times } = row
        return text === listed.item.text ? { state: 'same', times } : { state: 'different', text, times }
      })
    },
    liveKeys(job, from) {
      const rows = rowsOf(job)
      if (!rows) return { ids: [], next: null }
      const keys = rows.keysAfter(job.organization.id, position(from, rows.columns))
      const ids = keys.map((key) => packTexts(key.map(String)))
      const last = keys.length === KEYS_BATCH ? keys.at(-1) : undefined
      return {
        ids,
        next: last ? JSON.stringify({ types: rows.columns.keyTypes, last: last.map(String) }) : null,
      }
    },
  }
}

/** Null for an item that can have no row: it has no usable key, or one that its column cannot hold. */
function keyTexts(listed: ListedItem, { keyTypes }: Keys): string[] | null {
  if (!('key' in listed) || !boundKey(listed.key.parts, keyTypes)) return null
  return listed.key.parts.map(({ text }) => text)
}

/**
 * Null, which starts again, if a sync of another organization made a key column TEXT: its order has changed.
 */
function position(from: string | null, { keyTypes }: Keys): KeyValues | null {
  if (from === null) return null
  const { types: before, last } = JSON.parse(from) as { types: string[]; last: string[] }
  if (String(before) !== String(keyTypes)) return null
  return boundKey(
    last.map((text) => ({ text })),
    keyTypes,
  )
}

function openRawRows(connection: Connection, job: Pick<Job, 'collection'>): RawRows | null {
  const columns = readKeyColumns(connection, job)
  if (!columns) return null
  const table = tableName(job.collection.name, 'raw')
  const names = columns.keyColumns.map(quoted)
  // CROSS JOIN fixes the order: with a plain join SQLite may read the whole table.
  const rows = connection
    .prepare(`
      SELECT wanted.key, raw."_json", raw."_first_seen_at", raw."_changed_at"
      FROM json_each(:keys) AS wanted
      CROSS JOIN ${quoted(table)} AS raw
        ON raw."_organization_id" = ${castParameter('TEXT', ':organization')} AND ${SQLITE.hasId(columns, 'raw', 'wanted.value')}
    `)
    .raw()
  const select = `SELECT ${names.join(', ')} FROM ${quoted(table)} WHERE "_organization_id" = ?`
  const inOrder = `ORDER BY ${names.join(', ')} LIMIT ${KEYS_BATCH}`
  const first = connection.prepare(`${select} ${inOrder}`).raw().safeIntegers()
  const next = connection
    .prepare(`${select} AND (${names.join(', ')}) > (${names.map(() => '?').join(', ')}) ${inOrder}`)
    .raw()
    .safeIntegers()
  return {
    columns,
    rows(organization, keys) {
      const list = columns.keyColumns.length === 1 ? keys.map((key) => key?.[0]) : keys
      const found = rows.all({ organization, keys: JSON.stringify(list) })
      return new Map((found as [number, string, string, string][]).map(storedRow))
    },
    keysAfter: (organizationId, last) =>
      (last ? next.all(organizationId, ...last) : first.all(organizationId)) as KeyValues[],
  }
}

function storedRow([index, text, first, changed]: [number, string, string, string]): [number, StoredRow] {
  return [index, { text, times: { firstAt: Date.parse(first), changedAt: Date.parse(changed) } }]
}

/**
 * A collection's key columns as its raw table declares them now: one may become TEXT. Null without a table.
 */
export function readKeyColumns(connection: Connection, job: Pick<Job, 'collection'>): Keys | null {
  const table = tableName(job.collection.name, 'raw')
  const keyColumns = keyColumnNames(keyPathsOf(job))
  const keyTypes = keyColumns.map((name) => typeOfColumn(connection, table, name) as KeyType | undefined)
  return keyTypes.every((type) => type !== undefined) ? { keyColumns, keyTypes } : null
}

const LARGEST = 2n ** 63n

/**
 * A key's values as its columns hold them; null if an INTEGER column cannot hold one exactly: `007` is not 7.
 */
export function boundKey(
  key: readonly Pick<KeyPart, 'text'>[],
  types: readonly KeyType[],
): (string | bigint)[] | null {
  const values = key.map(({ text }, index) => (types[index] === 'TEXT' ? text : wholeNumber(text)))
  return values.every((value) => value !== null) ? values : null
}

function wholeNumber(text: string): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const number = BigInt(text)
  return String(number) === text && number >= -LARGEST && number < LARGEST ? number : null
}

/** What is known of each collection's tables while the schema stays the same. */
export interface SchemaCache<T> {
  get(collection: string, open: () => T): T
  /** Keeps the entries after this transaction's own changes of the schema. */
  keep(): void
  clear(): void
}

export function createSchemaCache<T>(connection: Connection): SchemaCache<T> {
  // Changes with every table or view, in other processes too. Compiling it takes longer than running it.
  const schemaVersion = connection.prepare('PRAGMA schema_version').pluck()
  const known = new Map<string, T>()
  let version: unknown = null
  const keep = () => {
    version = schemaVersion.get()
  }
  return {
    get(collection, open) {
      if (schemaVersion.get() !== version) known.clear()
      const value = known.get(collection) ?? open()
      known.set(collection, value)
      keep()
      return value
    },
    keep,
    clear: () => known.clear(),
  }
}
