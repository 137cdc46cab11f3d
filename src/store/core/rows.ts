import type { Key, ListedItem, StoredItem } from '../../sync/items.ts'
import type { Upsert } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { keyValues, type TableShape, tableName } from '../columns/catalog.ts'
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

/** Compares each item with its row, or its reject if it has no usable key. */
export function* lookUp(
  dialect: Dialect,
  keys: Keys,
  job: Job,
  items: readonly ListedItem[],
): Rule<StoredItem[]> {
  // An item has no row if the key columns cannot hold its key exactly: 007 is not 7.
  const ids = items.flatMap((listed) =>
    'key' in listed && keyValues(listed.key.parts, keys.keyTypes) ? [listed.id] : [],
  )
  const rows =
    ids.length === 0
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

function rowsSql({ each, hasId, join }: Dialect, keys: Keys, { collection: { name } }: Job): string {
  return `
    SELECT wanted.value AS id, j."_json" AS text, t."_first_seen_at" AS "firstAt", t."_changed_at" AS "changedAt"
    FROM ${each(':ids::text', 'wanted')}
    ${join} ${quoted(name)} AS t ON t."_organization_id" = :organization::text AND ${hasId(keys, 't', 'wanted.value')}
    ${join} ${quoted(tableName(name, 'json'))} AS j ON j."_row" = t."_row"
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

/** Makes the SQL once, since it is long with 500 columns. */
export function createRowWriter(dialect: Dialect, shape: TableShape) {
  const columns = lineColumns(shape)
  const sql = statementsOf(dialect, shape, columns)

  function keyOf({ parts }: Key): (string | bigint)[] {
    const values = keyValues(parts, shape.keyTypes)
    if (values) return values
    throw new Error(`a key column of ${shape.name} has no room for ${JSON.stringify(parts)}`)
  }

  function valuesOf({ values }: TypedRow): SqlValue[] {
    return shape.columns.map(({ name }) => values.get(name) ?? null)
  }

  /** When the last versions of these items ended that are not live, by their ids. */
  function* endsOf(organization: string, added: readonly Writing[]): Rule<ReadonlyMap<string, StoredTime>> {
    const rows = yield* all<{ id: string; ended: StoredTime }>(sql.ends, {
      organization,
      ids: JSON.stringify(added.map(({ upsert }) => upsert.key.id)),
    })
    return new Map(rows.map(({ id, ended }) => [id, ended]))
  }

  function* add(
    organization: string,
    added: readonly Writing[],
    { seq, firstRow, mayReturn }: Taken,
    at: string,
  ) {
    const ends = mayReturn ? yield* endsOf(organization, added) : NO_ENDS
    const typed: SqlValue[][] = []
    const json: SqlValue[][] = []
    for (const [index, { upsert, row }] of added.entries()) {
      const end = ends.get(upsert.key.id)
      // If the clock went back, an item that returns begins when its last version ended.
      const since = end === undefined ? at : timeOf(Math.max(msOf(end), msOf(at)))
      const number = BigInt(firstRow + index)
      typed.push([since, since, number, ...keyOf(upsert.key), ...valuesOf(row)])
      json.push([number, end === undefined ? 'added' : 'returned', upsert.text])
    }
    yield* dialect.eachLine(sql.add, columns.added, typed, { organization })
    yield* dialect.eachLine(sql.addJson, columns.addedJson, json, { seq })
  }

  function* change(job: Job, changed: readonly Writing[], seq: number, at: string): Rule<void> {
    const event = { organization: job.organization.id, at, seq }
    const keys = changed.map(({ upsert }) => keyOf(upsert.key))
    if (job.collection.history !== false) yield* dialect.eachLine(sql.keep, columns.keys, keys, event)
    const json = changed.map(({ upsert: { text, fields = [] } }, index) => [
      JSON.stringify(fields.map(sqlitePath)),
      text,
      ...(keys[index] ?? []),
    ])
    yield* dialect.eachLine(sql.changeJson, columns.changedJson, json, event)
    const typed = changed.map(({ row }, index) => [...valuesOf(row), ...(keys[index] ?? [])])
    if ((yield* dialect.eachLine(sql.change, columns.changed, typed, event)) !== changed.length)
      throw new Error(`rows of ${shape.name} that changed are no longer in its table`)
  }

  return {
    /** Writes new and changed rows, and keeps the versions that they replace. `typed`: the typed row of each. `time`: epoch milliseconds. */
    *write(job: Job, upserts: readonly Upsert[], typed: readonly TypedRow[], time: number): Rule<void> {
      if (upserts.length === 0) return
      const { organization, collection } = namesOf(job)
      const at = timeOf(time)
      const rows = upserts.flatMap((upsert, index): Writing[] => {
        const row = typed[index]
        return row ? [{ upsert, row }] : []
      })
      const added = rows.filter(({ upsert }) => upsert.change === 'added')
      const changed = rows.filter(({ upsert }) => upsert.change === 'changed')
      const taken = yield* takeSeq(collection, at, { rows: added.length })
      if (added.length > 0) yield* add(organization, added, taken, at)
      if (changed.length > 0) yield* change(job, changed, taken.seq, at)
    },
    /** Writes the values of rows again, by their numbers. */
    rewrite: (rows: readonly { number: bigint; typed: TypedRow }[]) =>
      dialect.eachLine(
        sql.rewrite,
        columns.rewritten,
        rows.map(({ number, typed }) => [...valuesOf(typed), number]),
      ),
  }
}

interface Writing {
  upsert: Upsert
  row: TypedRow
}

const NO_ENDS: ReadonlyMap<string, StoredTime> = new Map()

/**
 * The columns of the lines that each statement takes, in the order in which it names them. `k0`, `v0`: of an object with fields that are called
 * like numbers these would come first.
 */
function lineColumns({ keyColumns, keyTypes, columns }: TableShape) {
  const keys: Columns = Object.fromEntries(
    keyColumns.map((_, index) => [`k${index}`, SQL_TYPES[keyTypes[index] ?? 'TEXT']]),
  )
  const values: Columns = Object.fromEntries(columns.map(({ type }, index) => [`v${index}`, SQL_TYPES[type]]))
  const row = { row: 'bigint' }
  return {
    keys,
    added: { first: 'timestamptz', changed: 'timestamptz', ...row, ...keys, ...values },
    addedJson: { ...row, change: 'text', json: 'text' },
    changed: { ...values, ...keys },
    changedJson: { fields: 'text', json: 'text', ...keys },
    rewritten: { ...values, ...row },
  }
}

function statementsOf(dialect: Dialect, shape: TableShape, columns: ReturnType<typeof lineColumns>) {
  const { later, each, hasId, join } = dialect
  const typed = quoted(shape.name)
  const [json, history] = (['json', 'history'] as const).map((kind) => quoted(tableName(shape.name, kind)))
  const keys = shape.keyColumns.map(quoted)
  const values = shape.columns.map(({ name }) => quoted(name))
  const [at, seq] = [':at::timestamptz', ':seq::bigint']
  const of = (kind: keyof typeof columns) => dialect.lines(columns[kind])
  const valuesIn = (kind: keyof typeof columns) => Object.keys(columns[kind]).map(of(kind).value)
  const isRow = (row: string, kind: keyof typeof columns) =>
    [
      `${row}."_organization_id" = :organization::text`,
      ...keys.map((key, index) => `${row}.${key} = ${of(kind).value(`k${index}`)}`),
    ].join(' AND ')
  const set = (kind: keyof typeof columns) =>
    values.map((name, index) => `${name} = ${of(kind).value(`v${index}`)}`)
  return {
    add: `
      INSERT INTO ${typed} (${['"_first_seen_at"', '"_changed_at"', '"_row"', ...keys, ...values, '"_organization_id"'].join(', ')})
      ${of('added').rows([...valuesIn('added'), ':organization::text'])}
    `,
    addJson: `
      INSERT INTO ${json} ("_row", "_change", "_json", "_seq")
      ${of('addedJson').rows([...valuesIn('addedJson'), seq])}
    `,
    ends: `
      SELECT wanted.value AS id, max(h."_valid_to") AS ended
      FROM ${each(':ids::text', 'wanted')}
      ${join} ${history} AS h ON h."_organization_id" = :organization::text AND ${hasId(shape, 'h', 'wanted.value')}
      GROUP BY wanted.value
    `,
    // No version ends before it began, even if the clock went back.
    keep: `
      INSERT INTO ${history} (
        ${['"_organization_id"', ...keys, ...values].join(', ')}, "_json", "_valid_from", "_valid_to", "_reason",
        "_seq", "_change", "_changed_fields", "_ended_seq"
      )
      SELECT
        ${['"_organization_id"', ...keys, ...values].map((name) => `t.${name}`).join(', ')}, j."_json", t."_changed_at",
        ${later}(t."_changed_at", ${at}), 'changed', j."_seq", j."_change", j."_changed_fields", ${seq}
      FROM ${of('keys').join} ${typed} AS t
      ${join} ${json} AS j ON j."_row" = t."_row"
      WHERE ${isRow('t', 'keys')}
    `,
    changeJson: `
      UPDATE ${json} AS j
      SET "_seq" = ${seq}, "_change" = 'changed', "_changed_fields" = ${of('changedJson').value('fields')}, "_json" = ${of('changedJson').value('json')}
      FROM ${of('changedJson').join} ${typed} AS t
      WHERE ${isRow('t', 'changedJson')} AND j."_row" = t."_row"
    `,
    change: `
      UPDATE ${typed} AS t
      SET ${[`"_changed_at" = ${later}(t."_changed_at", ${at})`, ...set('changed')].join(', ')}
      ${of('changed').from}
      WHERE ${isRow('t', 'changed')}
    `,
    rewrite: `
      UPDATE ${typed} AS t SET ${set('rewritten').join(', ')} ${of('rewritten').from}
      WHERE t."_row" = ${of('rewritten').value('row')}
    `,
  }
}

/** What a transaction takes for the rows that it writes. */
interface Taken {
  seq: number
  /** The number of its first new row. */
  firstRow: number
  /** Items of the collection were removed once: one may return. */
  mayReturn: boolean
}

/**
 * Takes the next `seq` of a collection, for all events of this transaction, and numbers for new rows; `at` is the time of the events. They become
 * visible in the order of their numbers: a file has one writer at a time; on a server the row stays locked until the transaction has ended, and
 * what it wrote is visible before its locks are free, on a standby too. A number is never below the milliseconds of `at` since 1970: after a
 * restore of an earlier copy, no reader gets a number twice.
 */
export function* takeSeq(
  collection: string,
  at: string,
  { rows = 0, removals = 0 }: { rows?: number; removals?: number },
): Rule<Taken> {
  const last = yield* one<Record<'seq' | 'rows' | 'removals', number>>(
    `
      INSERT INTO sync_seq AS last (collection, seq, rows, removals) VALUES (:collection, :ms::bigint, :rows::bigint, :removals::bigint)
      ON CONFLICT (collection) DO UPDATE
      SET
        seq = CASE WHEN last.seq < excluded.seq THEN excluded.seq ELSE last.seq + 1 END,
        rows = last.rows + excluded.rows,
        removals = last.removals + excluded.removals
      RETURNING seq, rows, removals
    `,
    { collection, ms: Date.parse(at), rows, removals },
  )
  if (!last) throw new Error('the database returned no number')
  return { seq: last.seq, firstRow: last.rows - rows + 1, mayReturn: last.removals > 0 }
}
