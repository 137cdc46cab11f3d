import { packTexts } from '../../json/value.ts'
import type { ListedItem, StoredItem } from '../../sync/items.ts'
import type { Job } from '../../sync/types.ts'
import { type KeyType, keyValues } from '../columns/catalog.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { tableName } from './names.ts'
import {
  all,
  type Dialect,
  type Keys,
  msOf,
  one,
  quoted,
  type Rule,
  SQL_TYPES,
  type StoredTime,
} from './sql.ts'

// What is stored of the items of a job.

interface StoredRow {
  id: string
  text: string
  firstAt: StoredTime
  changedAt: StoredTime
}

/** Compares each item with its row, or its reject if it has no usable key. `keys`: null without tables. */
export function* lookUp(
  dialect: Dialect,
  keys: Keys | null,
  job: Job,
  items: readonly ListedItem[],
): Rule<StoredItem[]> {
  // An item has no row if the key columns cannot hold its key exactly: 007 is not 7.
  const ids = items.flatMap((listed) =>
    keys && 'key' in listed && keyValues(listed.key.parts, keys.keyTypes) ? [listed.id] : [],
  )
  const rows =
    !keys || ids.length === 0
      ? []
      : yield* all<StoredRow>(rowsSql(dialect, keys, job), { ...namesOf(job), ids: JSON.stringify(ids) })
  const stored = new Map(rows.map((row) => [row.id, row]))
  const states: StoredItem[] = []
  for (const listed of items)
    states.push(
      'reject' in listed
        ? yield* rejectOf(job, listed.id)
        : comparedItem(listed.item.text, stored.get(listed.id)),
    )
  return states
}

function rowsSql(dialect: Dialect, keys: Keys, { collection }: Job): string {
  return `
    SELECT wanted.value AS id, raw."_json" AS text, raw."_first_seen_at" AS "firstAt", raw."_changed_at" AS "changedAt"
    FROM ${dialect.each(':ids::text', 'wanted')}
    ${dialect.join} ${quoted(tableName(collection.name, 'raw'))} AS raw
      ON raw."_organization_id" = :organization::text AND ${dialect.hasId(keys, 'raw', 'wanted.value')}
  `
}

function comparedItem(text: string, row: StoredRow | undefined): StoredItem {
  if (!row) return { state: 'absent' }
  const times = { firstAt: msOf(row.firstAt), changedAt: msOf(row.changedAt) }
  return row.text === text ? { state: 'same', times } : { state: 'different', text: row.text, times }
}

function* rejectOf(job: Job, id: string): Rule<StoredItem> {
  const known = yield* one(`SELECT 1 FROM sync_rejects WHERE ${OF_JOB} AND fingerprint = :id`, {
    ...namesOf(job),
    id,
  })
  return known === null ? { state: 'absent' } : { state: 'same', times: null }
}

/** The most ids that one call of `liveKeys` returns. */
const KEYS_BATCH = 4000

/** Where a batch of rows ended: its last key, as texts. */
export interface Position {
  types: readonly KeyType[]
  last: readonly string[]
}

/** For SELECT: the key of a row as texts, `k0` and so on. */
export function keyTexts(keyColumns: readonly string[]): string {
  return keyColumns.map((name, index) => `CAST(${quoted(name)} AS TEXT) AS k${index}`).join(', ')
}

/** The key that `keyTexts` selected. */
export function keyIn(row: Readonly<Record<string, string>>, { keyColumns }: Keys): string[] {
  return keyColumns.map((_, index) => row[`k${index}`] ?? '')
}

/**
 * For WHERE: the rows after a position, in the order of the key. If a sync of another organization has made a key column TEXT since, the order is
 * another one, so all rows are read again. `first`: columns before the key.
 */
export function rowsBehind(
  { keyColumns, keyTypes }: Keys,
  from: Position | null,
  first: readonly string[] = [],
) {
  const order = [...first, ...keyColumns].map(quoted).join(', ')
  if (!from || String(from.types) !== String(keyTypes)) return { sql: 'true', order, values: {} }
  const types = [...first.map(() => 'text'), ...keyTypes.map((type) => SQL_TYPES[type])]
  const values = Object.fromEntries(from.last.map((text, index) => [`p${index}`, text]))
  return {
    sql: `(${order}) > (${types.map((type, index) => `:p${index}::${type}`).join(', ')})`,
    order,
    values,
  }
}

/** See `Store.liveKeys`. */
export function* liveKeys(
  keys: Keys | null,
  job: Job,
  from: string | null,
): Rule<{ ids: string[]; next: string | null }> {
  if (!keys) return { ids: [], next: null }
  const behind = rowsBehind(keys, from === null ? null : (JSON.parse(from) as Position))
  const rows = yield* all<Record<string, string>>(
    `
      SELECT ${keyTexts(keys.keyColumns)}
      FROM ${quoted(tableName(job.collection.name, 'raw'))}
      WHERE "_organization_id" = :organization AND ${behind.sql}
      ORDER BY ${behind.order}
      LIMIT ${KEYS_BATCH}
    `,
    { organization: job.organization.id, ...behind.values },
  )
  const texts = rows.map((row) => keyIn(row, keys))
  const last = texts.length === KEYS_BATCH ? texts.at(-1) : undefined
  const next: Position | null = last ? { types: keys.keyTypes, last } : null
  return { ids: texts.map(packTexts), next: next && JSON.stringify(next) }
}
