import type { ListedItem, StoredItem } from '../../sync/items.ts'
import type { Upsert } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { type Catalog, identityOf, keyValues, tableName } from '../columns/catalog.ts'
import { type Column, sqlitePath, type SqlValue } from '../columns/column.ts'
import type { TypedRow } from '../columns/row.ts'
import { type JobNames, namesOf, OF_JOB } from './jobs.ts'
import {
  all,
  type Columns,
  type Dialect,
  type Keys,
  laterOf,
  type Lines,
  msOf,
  one,
  only,
  quoted,
  type Rule,
  run,
  SQL_TYPES,
  timeOf,
  type Values,
} from './sql.ts'

// The rows of a collection in its three tables.

/** Compares each item with its row, or its reject if it has no usable key. */
export function* lookUp(
  dialect: Dialect,
  keys: Keys,
  job: Job,
  items: readonly ListedItem[],
): Rule<StoredItem[]> {
  const { name } = job.collection
  // An item has no row if the key columns cannot hold its key exactly: 007 is not 7.
  const ids = items.flatMap((listed) =>
    'key' in listed && keyValues(listed.key.parts, keys) ? [listed.id] : [],
  )
  const rows = yield* all<{ id: string; text: string } & Record<'firstAt' | 'changedAt', string>>(
    `
      SELECT wanted.value AS id, j."_json" AS text, t."_first_seen_at" AS "firstAt", t."_changed_at" AS "changedAt"
      FROM ${dialect.each(':ids::text', 'wanted')}
      CROSS JOIN ${quoted(name)} AS t
      CROSS JOIN ${quoted(tableName(name, 'json'))} AS j
      WHERE t."_organization_id" = :organization::text AND ${dialect.hasId(keys, 't', 'wanted.value')} AND j."_row" = t."_row"
    `,
    { ...namesOf(job), ids: JSON.stringify(ids) },
  )
  const stored = new Map(rows.map((row) => [row.id, row]))
  const states: StoredItem[] = []
  for (const listed of items) {
    const row = stored.get(listed.id)
    if ('reject' in listed) states.push(yield* rejectOf(job, listed.id))
    else if (!row) states.push({ state: 'absent' })
    else {
      const { text } = row
      const times = { firstAt: msOf(row.firstAt), changedAt: msOf(row.changedAt) }
      states.push(text === listed.item.text ? { state: 'same', times } : { state: 'different', text, times })
    }
  }
  return states
}

function* rejectOf(job: Job, id: string): Rule<StoredItem> {
  const text = `SELECT 1 FROM sync_rejects WHERE ${OF_JOB} AND _fingerprint = :id`
  const known = yield* one(text, { ...namesOf(job), id })
  return known === null ? { state: 'absent' } : { state: 'same', times: null }
}

export type RowWriter = ReturnType<typeof createRowWriter>

/** A row to write, and how its tables hold it: its key, and its line in the typed one. */
export interface PlacedRow {
  upsert: Upsert
  key: readonly (string | bigint)[]
  row: TypedRow
}

/** Makes the SQL once, since it is long with 500 columns. */
export function createRowWriter(dialect: Dialect, catalog: Catalog) {
  const sql = statementsOf(dialect, catalog)

  function valuesOf({ values }: TypedRow): SqlValue[] {
    return catalog.values.map(({ name }) => values.get(name) ?? null)
  }

  function* add(organization: string, added: readonly PlacedRow[], taken: Taken, at: string): Rule<void> {
    // When the last versions of items ended that are not live.
    const ends = new Map<string, string>()
    if (taken.mayReturn) {
      const ids = JSON.stringify(added.map(({ upsert }) => upsert.key.id))
      const ended = yield* all<{ id: string; ended: string }>(sql.ends, { organization, ids })
      for (const row of ended) ends.set(row.id, row.ended)
    }
    const typed: SqlValue[][] = []
    const json: SqlValue[][] = []
    for (const [index, { upsert, key, row }] of added.entries()) {
      const end = ends.get(upsert.key.id)
      // If the clock went back, an item that returns begins when its last version ended.
      const since = end === undefined ? at : timeOf(Math.max(msOf(end), msOf(at)))
      const number = BigInt(taken.firstRow + index)
      typed.push([since, since, number, ...key, ...valuesOf(row)])
      const seq = BigInt(taken.firstSeq + index)
      json.push([number, end === undefined ? 'added' : 'returned', upsert.text, seq])
    }
    yield* sql.add(typed, { organization })
    yield* sql.addJson(json, {})
  }

  function* change(job: Job, changed: readonly PlacedRow[], firstSeq: number, at: string): Rule<void> {
    const event = { organization: job.organization.id, at }
    const numbered = changed.map(({ key }, index) => [BigInt(firstSeq + index), ...key])
    if (job.collection.history !== false) yield* sql.keep(numbered, event)
    const json = changed.map(({ upsert: { text, fields = [] } }, index) => [
      JSON.stringify(fields.map(sqlitePath)),
      text,
      ...(numbered[index] ?? []),
    ])
    yield* sql.changeJson(json, event)
    const typed = changed.map(({ row, key }) => [...valuesOf(row), ...key])
    if ((yield* sql.change(typed, event)) !== changed.length)
      throw new Error(`rows of ${catalog.name} that changed are no longer in its table`)
  }

  /** Writes new and changed rows, and keeps the versions that they replace. `at`: ISO 8601. */
  return function* write(job: Job, rows: readonly PlacedRow[], at: string): Rule<void> {
    if (rows.length === 0) return
    const { organization, collection } = namesOf(job)
    const added = rows.filter(({ upsert }) => upsert.change === 'added')
    const changed = rows.filter(({ upsert }) => upsert.change === 'changed')
    const taken = yield* takeSeq(collection, at, { events: rows.length, rows: added.length })
    if (added.length > 0) yield* add(organization, added, taken, at)
    if (changed.length > 0) yield* change(job, changed, taken.firstSeq + added.length, at)
  }
}

/** The statements, each with the columns of its lines in the order in which it names them. `k0`, `v0`: of an object with fields that are called like numbers these would come first. */
function statementsOf(dialect: Dialect, catalog: Catalog) {
  const { name } = catalog
  const typed = quoted(name)
  const [json, history] = (['json', 'history'] as const).map((kind) => quoted(tableName(name, kind)))
  const keys = catalog.keys.map((column) => quoted(column.name))
  const values = catalog.values.map((column) => quoted(column.name))
  const at = ':at::timestamptz'
  const [keyLine, valueLine] = [lineOf('k', catalog.keys), lineOf('v', catalog.values)]
  const numbered: Columns = { seq: 'bigint', ...keyLine }
  const isRow = ({ value }: Lines) =>
    [
      't."_organization_id" = :organization::text',
      ...keys.map((key, index) => `t.${key} = ${value(`k${index}`)}`),
    ].join(' AND ')
  /** The statement for lines of these columns. */
  const of = (columns: Columns, textOf: (line: Lines, given: string[]) => string) => {
    const line = dialect.lines(columns)
    const text = textOf(line, Object.keys(columns).map(line.value))
    return (lines: readonly (readonly SqlValue[])[], others: Values) => line.run(text, lines, others)
  }
  return {
    add: of(
      { first: 'timestamptz', changed: 'timestamptz', row: 'bigint', ...keyLine, ...valueLine },
      (line, given) => `
        INSERT INTO ${typed} (${['"_first_seen_at"', '"_changed_at"', '"_row"', ...keys, ...values, '"_organization_id"'].join(', ')})
        ${line.rows([...given, ':organization::text'])}
      `,
    ),
    addJson: of(
      { row: 'bigint', change: 'text', json: 'text', seq: 'bigint' },
      (line, given) => `INSERT INTO ${json} ("_row", "_change", "_json", "_seq") ${line.rows(given)}`,
    ),
    ends: `
      SELECT wanted.value AS id, max(h."_valid_to") AS ended
      FROM ${dialect.each(':ids::text', 'wanted')}
      CROSS JOIN ${history} AS h
      WHERE h."_organization_id" = :organization::text AND ${dialect.hasId(catalog.keys, 'h', 'wanted.value')}
      GROUP BY wanted.value
    `,
    keep: of(
      numbered,
      (line) => `
        ${keepVersion(catalog, "'changed'", line.value('seq'))}
        FROM ${line.join} ${typed} AS t
        CROSS JOIN ${json} AS j
        WHERE ${isRow(line)} AND j."_row" = t."_row"
      `,
    ),
    changeJson: of(
      { fields: 'text', json: 'text', ...numbered },
      (line) => `
        UPDATE ${json} AS j
        SET "_change" = 'changed', "_changed_fields" = ${line.value('fields')}, "_json" = ${line.value('json')}, "_seq" = ${line.value('seq')}
        FROM ${line.join} ${typed} AS t
        WHERE ${isRow(line)} AND j."_row" = t."_row"
      `,
    ),
    change: of({ ...valueLine, ...keyLine }, (line) => {
      const set = values.map((column, index) => `${column} = ${line.value(`v${index}`)}`)
      return `
        UPDATE ${typed} AS t
        SET ${[`"_changed_at" = ${laterOf('t."_changed_at"', at)}`, ...set].join(', ')}
        ${line.from}
        WHERE ${isRow(line)}
      `
    }),
  }
}

function lineOf(letter: 'k' | 'v', columns: readonly Column[]): Columns {
  return Object.fromEntries(columns.map(({ type }, index) => [`${letter}${index}`, SQL_TYPES[type]]))
}

/** Begins a statement that keeps rows `t`, with their JSON `j`, as versions that end `:at`, each with an event of its own. None ends before it began, even if the clock went back. */
export function keepVersion({ name, keys, values }: Catalog, reason: string, seq: string): string {
  const names = [...identityOf(keys), ...values.map((column) => column.name)].map(quoted)
  return `
    INSERT INTO ${quoted(tableName(name, 'history'))} (
      ${names.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_seq", "_change", "_changed_fields", "_ended_seq"
    )
    SELECT
      ${names.map((column) => `t.${column}`).join(', ')}, j."_json", t."_changed_at",
      ${laterOf('t."_changed_at"', ':at::timestamptz')}, ${reason}, j."_seq", j."_change", j."_changed_fields", ${seq}
  `
}

/** Deletes live rows of a job, by their numbers, from both tables. Returns how many. */
export function* deleteRows(
  dialect: Dialect,
  { organization, collection }: JobNames,
  rows: readonly number[],
): Rule<number> {
  const chosen = `"_row" IN (SELECT CAST(gone.value AS bigint) FROM ${dialect.each(':rows::text', 'gone')})`
  const values = { rows: JSON.stringify(rows.map(String)) }
  yield* run(`DELETE FROM ${quoted(tableName(collection, 'json'))} WHERE ${chosen}`, values)
  const deleted = yield* run(`DELETE FROM ${quoted(collection)} WHERE ${chosen}`, values)
  const names = { organization, collection, deleted }
  yield* run(`UPDATE sync_jobs SET rows = rows - :deleted::bigint WHERE ${OF_JOB}`, names)
  return deleted
}

/** What a transaction takes for the rows that it writes. */
interface Taken {
  /** The `seq` of its first event. */
  firstSeq: number
  /** The number of its first new row. */
  firstRow: number
  /** Items of the collection were removed once: one may return. */
  mayReturn: boolean
}

/** More than a mirror writes events in a millisecond, and so few that SQLite keeps a number in six bytes and a spreadsheet all its digits. */
const SEQ_PER_MS = 50

/**
 * Takes a `seq` of a collection for each event of this transaction, and numbers for new rows; `at` is the time of the events. They become
 * visible in the order of their numbers: a file has one writer at a time; on a server the row stays locked until the transaction has ended, and
 * what it wrote is visible before its locks are free, on a standby too. A number is never below the
 * time `at`, in parts of a millisecond since 1970: after a restore of an earlier copy, no reader gets a number twice.
 */
export function* takeSeq(
  collection: string,
  at: string,
  { events, rows = 0, removals = 0 }: { events: number; rows?: number; removals?: number },
): Rule<Taken> {
  const last = yield* only<Record<'seq' | 'rows' | 'removals', number>>(
    `
      INSERT INTO sync_seq AS last (collection, seq, rows, removals) VALUES (:collection, :least::bigint, :rows::bigint, :removals::bigint)
      ON CONFLICT (collection) DO UPDATE
      SET
        seq = CASE WHEN last.seq + :events::bigint < excluded.seq THEN excluded.seq ELSE last.seq + :events::bigint END,
        rows = last.rows + excluded.rows,
        removals = last.removals + excluded.removals
      RETURNING seq, rows, removals
    `,
    { collection, least: Date.parse(at) * SEQ_PER_MS + events, events, rows, removals },
  )
  return { firstSeq: last.seq - events + 1, firstRow: last.rows - rows + 1, mayReturn: last.removals > 0 }
}

/** The most ids that one call of `liveKeys` returns. */
const KEYS_BATCH = 4000

/**
 * The ids of live rows in the order of their keys, a batch at a time. `from`: the last id of the batch before (see `Store.liveKeys`). Rows may be
 * passed over if another walk makes the key TEXT meanwhile: the next walk misses them.
 */
export function* liveKeys(
  dialect: Dialect,
  keys: Keys,
  { organization, collection }: Job,
  from: string | null,
): Rule<{ ids: string[]; next: string | null }> {
  const columns = keys.map(({ name }) => `t.${quoted(name)}`).join(', ')
  const last: string[] = keys.length === 1 ? [from ?? ''] : JSON.parse(from ?? '[]')
  const given = keys.map(({ type }, index) => `CAST(:k${index} AS ${SQL_TYPES[type]})`).join(', ')
  const rows = yield* all<{ id: string }>(
    `
      SELECT ${dialect.idOfRow(keys, 't')} AS id
      FROM ${quoted(collection.name)} AS t
      WHERE t."_organization_id" = :organization::text ${from === null ? '' : `AND (${columns}) > (${given})`}
      ORDER BY ${columns}
      LIMIT ${KEYS_BATCH}
    `,
    { organization: organization.id, ...Object.fromEntries(last.map((text, index) => [`k${index}`, text])) },
  )
  const ids = rows.map(({ id }) => id)
  return { ids, next: ids.length < KEYS_BATCH ? null : (ids.at(-1) ?? null) }
}
