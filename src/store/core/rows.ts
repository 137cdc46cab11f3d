import type { Key } from '../../sync/items.ts'
import type { Upsert } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { keyValues, type TableShape } from '../columns/catalog.ts'
import { type SqlValue, sqlitePath } from '../columns/column.ts'
import type { TypedRow } from '../columns/row.ts'
import { namesOf } from './jobs.ts'
import { TABLE_KINDS, tableName } from './names.ts'
import { type Columns, type Dialect, one, quoted, type Rule, SQL_TYPES, timeOf } from './sql.ts'

// The rows of a collection in its three tables.

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
  const { add, keep, change, restore } = textsOf(dialect, shape, columns)

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

/** The columns of the lines that each statement takes. */
type LineColumns = Record<'added' | 'changed' | 'typed', Columns>

function lineColumns({ keyColumns, keyTypes, columns }: TableShape): LineColumns {
  const keys = Object.fromEntries(
    keyColumns.map((name, index) => [name, SQL_TYPES[keyTypes[index] ?? 'TEXT']]),
  )
  const values = Object.fromEntries(columns.map(({ name, type }) => [name, SQL_TYPES[type]]))
  return {
    added: { ...keys, _json: 'text' },
    changed: { ...keys, _json: 'text', _changed_fields: 'text' },
    typed: { _organization_id: 'text', ...keys, ...values },
  }
}

function textsOf({ lines, later }: Dialect, shape: TableShape, columns: LineColumns) {
  const [typed, raw, history] = TABLE_KINDS.map((kind) => quoted(tableName(shape.name, kind)))
  const keys = shape.keyColumns.map(quoted)
  const values = shape.columns.map(({ name }) => quoted(name))
  const isSame = (row: string, organization: string) =>
    [`${row}."_organization_id" = ${organization}`, ...keys.map((key) => `${row}.${key} = line.${key}`)].join(
      ' AND ',
    )
  const organization = ':organization::text'
  const at = ':at::timestamptz'
  const seq = ':seq::bigint'
  const written = ['"_first_seen_at"', '"_changed_at"', ...values]
  return {
    // If the clock went back, an item that returns begins when its last version ended.
    add: `
      INSERT INTO ${raw} (
        "_organization_id", ${keys.join(', ')}, "_json", "_first_seen_at", "_changed_at", "_first_seen_seq", "_changed_seq"
      )
      SELECT ${[organization, ...of('line', keys)].join(', ')}, line."_json", line."_since", line."_since", ${seq}, ${seq}
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
        "_valid_from_seq", "_valid_to_seq"
      )
      SELECT
        ${of('stored', ['"_organization_id"', ...keys]).join(', ')}, stored."_json", stored."_changed_at",
        ${later}(stored."_changed_at", ${at}), 'changed', stored."_first_seen_at", line."_changed_fields", stored."_changed_seq", ${seq}
      FROM ${lines(columns.changed)}
      CROSS JOIN ${raw} AS stored
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
      SELECT ${[...of('stored', ['"_organization_id"', ...keys, '"_first_seen_at"', '"_changed_at"']), ...of('line', values)].join(', ')}
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
