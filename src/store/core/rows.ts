import type { Key, ListedItem, StoredItem } from '../../sync/items.ts'
import type { Upsert } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { keyValues, TABLE_KINDS, type TableShape, tableName } from '../columns/catalog.ts'
import { type SqlValue, sqlitePath } from '../columns/column.ts'
import type { TypedRow } from '../columns/row.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import {
  all,
  type Columns,
  type Dialect,
  type Keys,
  msOf,
  one,
  quoted,
  type Rule,
  SQL_TYPES,
  type StoredTime,
  timeOf,
} from './sql.ts'

// The rows of a collection in its three tables.

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

export type RowWriter = ReturnType<typeof createRowWriter>

/** A typed row, and whose it is. */
export interface TypedLine {
  organization: string
  key: Key['parts']
  typed: TypedRow
}

/** Makes the SQL once, since it is long with 500 columns. */
export function createRowWriter(dialect: Dialect, shape: TableShape) {
  const columns = lineColumns(shape)
  const { add, keep, change, restore } = statementsOf(dialect, shape, columns)

  function keyOf(key: Key['parts']) {
    const values = keyValues(key, shape.keyTypes)
    if (values) return values
    throw new Error(`a key column of ${shape.name} has no room for ${JSON.stringify(key)}`)
  }

  function* writeTyped(rows: readonly TypedLine[]): Rule<void> {
    const lines = rows.map(({ organization, key, typed: { values } }) => {
      const keys: SqlValue[] = [organization, ...keyOf(key)]
      return keys.concat(shape.columns.map(({ name }) => values.get(name) ?? null))
    })
    yield* dialect.eachLine(restore, columns.typed, lines)
  }

  return {
    /** Writes the typed rows of raw ones, with their times. */
    writeTyped,
    /** Writes new and changed rows, and keeps the versions that they replace. `typed`: the typed row of each. `time`: epoch milliseconds. */
    *write(job: Job, upserts: readonly Upsert[], typed: readonly TypedRow[], time: number): Rule<void> {
      if (upserts.length === 0) return
      const { organization, collection } = namesOf(job)
      const at = timeOf(time)
      const event = { organization, at, seq: yield* takeSeq(collection, at) }
      const added = upserts.filter(isNew).map(({ key, text }) => [...keyOf(key.parts), text])
      yield* dialect.eachLine(add, columns.added, added, event)
      const changed = upserts
        .filter((upsert) => !isNew(upsert))
        .map(({ key, text, fields = [] }) => [
          ...keyOf(key.parts),
          text,
          JSON.stringify(fields.map(sqlitePath)),
        ])
      if (job.collection.history !== false) yield* dialect.eachLine(keep, columns.changed, changed, event)
      if ((yield* dialect.eachLine(change, columns.changed, changed, event)) !== changed.length)
        throw new Error(`rows of ${collection} that changed are no longer in its table`)
      yield* writeTyped(
        upserts.flatMap(({ key: { parts } }, index) => {
          const row = typed[index]
          return row ? [{ organization, key: parts, typed: row }] : []
        }),
      )
    },
  }
}

function isNew({ change }: Upsert): boolean {
  return change === 'added'
}

/** The columns of the lines that each statement takes. `k0`, `v0`: of an object with fields that are called like numbers these would come first. */
type LineColumns = Record<'added' | 'changed' | 'typed', Columns>

function lineColumns({ keyColumns, keyTypes, columns }: TableShape): LineColumns {
  const keys = Object.fromEntries(
    keyColumns.map((_, index) => [`k${index}`, SQL_TYPES[keyTypes[index] ?? 'TEXT']]),
  )
  const values = Object.fromEntries(columns.map(({ type }, index) => [`v${index}`, SQL_TYPES[type]]))
  return {
    added: { ...keys, _json: 'text' },
    changed: { ...keys, _json: 'text', _changed_fields: 'text' },
    typed: { _organization_id: 'text', ...keys, ...values },
  }
}

function statementsOf({ lines, later }: Dialect, shape: TableShape, columns: LineColumns) {
  const [typed, raw, history] = TABLE_KINDS.map((kind) => quoted(tableName(shape.name, kind)))
  const keys = shape.keyColumns.map(quoted)
  const values = shape.columns.map(({ name }) => quoted(name))
  const isSame = (row: string, organization: string) =>
    [
      `${row}."_organization_id" = ${organization}`,
      ...keys.map((key, index) => `${row}.${key} = line.k${index}`),
    ].join(' AND ')
  const organization = ':organization::text'
  const at = ':at::timestamptz'
  const seq = ':seq::bigint'
  const written = ['"_first_seen_at"', '"_changed_at"', ...values]
  const former = [
    'stored."_organization_id" = former."_organization_id"',
    ...keys.map((key) => `stored.${key} = former.${key}`),
  ].join(' AND ')
  return {
    // If the clock went back, an item that returns begins when its last version ended.
    add: `
      INSERT INTO ${raw} (
        "_organization_id", ${keys.join(', ')}, "_json", "_first_seen_at", "_changed_at", "_first_seen_seq", "_changed_seq"
      )
      SELECT ${[organization, ...keys.map((_, index) => `line.k${index}`)].join(', ')}, line."_json", line."_since", line."_since", ${seq}, ${seq}
      FROM (
        SELECT
          line.*,
          ${later}(${at}, coalesce((SELECT max("_valid_to") FROM ${history} AS former WHERE ${isSame('former', organization)}), ${at}))
            AS "_since"
        FROM ${lines(columns.added)}
      ) AS line
    `,
    // No version ends before it began, even if the clock went back.
    keep: `
      INSERT INTO ${history} (
        "_organization_id", ${keys.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at", "_changed_fields",
        ${['"_valid_from_seq"', '"_valid_to_seq"', ...values].join(', ')}
      )
      SELECT
        ${of('stored', ['"_organization_id"', ...keys]).join(', ')}, stored."_json", stored."_changed_at",
        ${later}(stored."_changed_at", ${at}), 'changed', stored."_first_seen_at", line."_changed_fields",
        ${['stored."_changed_seq"', seq, ...of('former', values)].join(', ')}
      FROM ${lines(columns.changed)}
      CROSS JOIN ${raw} AS stored
      LEFT JOIN ${typed} AS former ON ${former}
      WHERE ${isSame('stored', organization)}
    `,
    change: `
      UPDATE ${raw} AS stored
      SET "_json" = line."_json", "_changed_at" = ${later}(stored."_changed_at", ${at}), "_changed_seq" = ${seq}
      FROM ${lines(columns.changed)}
      WHERE ${isSame('stored', organization)}
    `,
    restore: `
      INSERT INTO ${typed} (${['"_organization_id"', ...keys, ...written].join(', ')})
      SELECT ${[...of('stored', ['"_organization_id"', ...keys, '"_first_seen_at"', '"_changed_at"']), ...values.map((_, index) => `line.v${index}`)].join(', ')}
      FROM ${lines(columns.typed)}
      CROSS JOIN ${raw} AS stored
      WHERE ${isSame('stored', 'line."_organization_id"')}
      ON CONFLICT (${['"_organization_id"', ...keys].join(', ')}) DO UPDATE
      SET ${written.map((name) => `${name} = excluded.${name}`).join(', ')}
    `,
  }
}

function of(row: string, names: readonly string[]): string[] {
  return names.map((name) => `${row}.${name}`)
}

/**
 * Takes the next `seq` of a collection, for all events of this transaction; `at` is their time. Events become visible in the order of their
 * numbers: a file has one writer at a time; on a server the row stays locked until the transaction has ended, and what it wrote is visible
 * before its locks are free, on a standby too. A number is never below the milliseconds of `at` since 1970: after a restore of an earlier
 * copy, no reader gets a number twice.
 */
export function* takeSeq(collection: string, at: string): Rule<number> {
  const row = yield* one<{ seq: number }>(
    `
      INSERT INTO sync_seq AS last (collection, seq) VALUES (:collection, :ms::bigint)
      ON CONFLICT (collection) DO UPDATE
      SET seq = CASE WHEN last.seq < excluded.seq THEN excluded.seq ELSE last.seq + 1 END
      RETURNING seq
    `,
    { collection, ms: Date.parse(at) },
  )
  return row?.seq ?? 0
}
