import { parseExact } from '../../json/exact.ts'
import { asJsonObject } from '../../json/value.ts'
import { keyColumnNames, splitKey, tableName } from '../columns/catalog.ts'
import type { Column, ColumnType } from '../columns/column.ts'
import {
  type ColumnCount,
  type CountedRow,
  countingSql,
  type Found,
  foundIn,
  type Misfit,
  misfitIn,
  misfitSql,
  nextCounts,
  withMisfits,
} from '../columns/counts.ts'
import { type ArrayView, asRead, parentNames } from '../columns/elements.ts'
import { type JobNames, OF_JOB } from './jobs.ts'
import { all, type Dialect, one, quoted, type Rule, run, type StoredTime, timeOrNull, upsert } from './sql.ts'
import { knownKey, loadArrayViews, loadColumns } from './tables.ts'

// `sync_column_counts`, and what `status` notes of it. The decisions are in columns/counts.ts.

/** Whether rows of the job changed since its values were counted, or may have. */
function* isUncounted(job: JobNames): Rule<boolean> {
  const row = yield* one(
    `
      SELECT 1
      FROM sync_jobs
      WHERE ${OF_JOB} AND (
        columns_run IS NULL OR EXISTS (
          SELECT 1 FROM sync_runs
          WHERE ${OF_JOB} AND id > sync_jobs.columns_run AND rows_added + rows_changed + rows_removed > 0
        )
      )
    `,
    job,
  )
  return row !== null
}

/** At the end of a complete full walk, after its removals: counts the values again if rows changed. */
export function* recordColumns(dialect: Dialect, job: JobNames, walkId: number): Rule<void> {
  if (yield* isUncounted(job)) yield* countColumns(dialect, job)
  yield* run(
    `
      UPDATE sync_jobs
      SET
        columns_as_of = (SELECT started_at FROM sync_walks WHERE id = :walkId),
        columns_run = (SELECT max(id) FROM sync_runs WHERE ${OF_JOB})
      WHERE ${OF_JOB}
    `,
    { ...job, walkId },
  )
}

/** Counts the values of a job in each column, and the misfits among those of the views of its arrays. Call it with the job's row locked. */
function* countColumns(dialect: Dialect, job: JobNames): Rule<void> {
  const { organization, collection } = job
  const columns = yield* loadColumns(dialect, collection)
  const key = yield* knownKey(collection)
  if (!key) return
  const keys = keyColumnNames(splitKey(key), dialect.limits)
  const row = yield* one<CountedRow>(
    `
      SELECT ${countingSql(columns, { quoted, rowId: dialect.rowId })}
      FROM ${quoted(collection)}
      WHERE "_organization_id" = :organization
    `,
    { organization },
  )
  if (!row) return
  const found: FoundWithMisfit[] = []
  for (const counted of foundIn<string | number>(columns, row))
    found.push({ ...counted, misfit: yield* readMisfit(dialect, collection, keys, counted) })
  yield* saveCounts(dialect, job, collection, found, Number(row.rows))
  for (const view of yield* loadArrayViews(dialect, collection))
    yield* countElements(dialect, job, { keys, rows: Number(row.rows) }, view)
}

type FoundWithMisfit = Found<string | number> & { misfit: Misfit | null }

/** The most columns of a view for which a misfit is read as an example: each takes a statement. */
const MOST_EXAMPLES = 20

/** `rows`: how many the job has. */
function* countElements(
  dialect: Dialect,
  { organization, collection }: JobNames,
  { keys, rows }: { keys: readonly string[]; rows: number },
  { name, arrayColumn, elements }: ArrayView,
): Rule<void> {
  if (elements.length === 0 || !(yield* dialect.isOwnView(name))) return
  const columns = withMisfits(elements)
  const row = yield* one<CountedRow>(
    `
      SELECT ${countingSql(columns, { quoted, rowId: null })}
      FROM ${quoted(name)}
      WHERE "_organization_id" = :organization
    `,
    { organization },
  )
  if (!row) return
  const parents = parentNames(keys, dialect.limits)
  const same = ['_organization_id', ...keys].map(
    (key, index) => `parent.${quoted(key)} = element.${quoted(parents[index - 1] ?? key)}`,
  )
  let examples = 0
  const found: FoundWithMisfit[] = []
  for (const counted of foundIn<string | number>(columns, row)) {
    const example =
      counted.misfits + counted.objects === 0 || ++examples > MOST_EXAMPLES
        ? null
        : yield* one<{ list: string; index: number }>(
            `
              SELECT parent.${quoted(arrayColumn)} AS list, element."_index" AS "index"
              FROM ${quoted(name)} AS element
              JOIN ${quoted(collection)} AS parent ON ${same.join(' AND ')}
              WHERE element."_organization_id" = :organization AND (${misfitSql(columns, counted.main, (column) => `element.${quoted(column)}`)})
              LIMIT 1
            `,
            { organization },
          )
    found.push({ ...counted, misfit: example && misfitAmong(example, counted.main) })
  }
  const others = elements.filter((column) => !columns.includes(column))
  const filled = yield* filledFields(organization, collection, name, others)
  for (const main of others)
    found.push({
      column: main.name,
      main,
      filled: filled.has(main) ? 1 : 0,
      misfits: 0,
      objects: 0,
      misfitRow: null,
      misfit: null,
    })
  // Also if all arrays are empty now: their fields have become empty, too.
  yield* saveCounts(dialect, { organization, collection }, name, found, rows)
}

/** How many elements are sampled: nearly every field occurs in one of them. */
const SAMPLE = 1000

/**
 * The columns of a view that hold a value. All elements are read only for columns that held one before and have none in a sample: reading them for
 * fields that the organization never had would take much longer. At most two statements, since SQLite compiles the whole view for each.
 */
function* filledFields(
  organization: string,
  collection: string,
  view: string,
  columns: readonly Column[],
): Rule<Set<Column>> {
  const sample = yield* filledAmong(
    organization,
    columns,
    `${quoted(view)} WHERE "_organization_id" = :organization LIMIT ${SAMPLE}`,
  )
  const { counts } = yield* readBefore({ organization, collection }, view)
  const known = new Set(counts.map(({ column }) => column))
  const missed = columns.filter((column) => !sample.has(column) && known.has(column.name))
  const whole = yield* filledAmong(
    organization,
    missed,
    `${quoted(view)} WHERE "_organization_id" = :organization`,
  )
  return sample.union(whole)
}

/** @param from Which elements are looked at: the SQL after FROM. */
function* filledAmong(organization: string, columns: readonly Column[], from: string): Rule<Set<Column>> {
  if (columns.length === 0) return new Set()
  const some = columns.map(
    ({ name }, index) => `max(CASE WHEN ${quoted(name)} IS NOT NULL THEN 1 END) AS f${index}`,
  )
  const row = yield* one<Record<string, unknown>>(
    `SELECT ${some.join(', ')} FROM (SELECT * FROM ${from}) AS element`,
    { organization },
  )
  return new Set(columns.filter((_, index) => Number(row?.[`f${index}`] ?? 0) === 1))
}

function misfitAmong({ list, index }: { list: string; index: number }, main: Column): Misfit | null {
  const elements = parseExact(list)
  const element = Array.isArray(elements) ? elements[index] : undefined
  return element === undefined ? null : misfitIn(asJsonObject(element), main, asRead)
}

/** `table`: the collection's, or a view. */
function* saveCounts(
  dialect: Dialect,
  job: JobNames,
  table: string,
  found: readonly FoundWithMisfit[],
  rows: number,
): Rule<void> {
  const counts = nextCounts(found, rows, yield* readBefore(job, table))
  yield* upsert(
    dialect,
    COUNTS,
    counts.map(({ column, filled, misfits, objects, misfit, lastFilledAt, emptied }) => {
      const lastFilled = timeOrNull(lastFilledAt)
      return [job.organization, table, column, filled, misfits, objects, misfit, lastFilled, emptied]
    }),
  )
}

const COUNTS = {
  table: 'sync_column_counts',
  columns: {
    organization_id: 'text',
    collection: 'text',
    column: 'text',
    filled: 'bigint',
    misfits: 'bigint',
    objects: 'bigint',
    misfit: 'text',
    last_filled_at: 'timestamptz',
    emptied: 'bigint',
  },
  key: ['organization_id', 'collection', 'column'],
}

function* readMisfit(
  { rowId, rowIdType }: Dialect,
  collection: string,
  keys: readonly string[],
  { main, misfits, objects, misfitRow }: Found<string | number>,
): Rule<Misfit | null> {
  if (misfits + objects === 0 || misfitRow === null) return null
  const same = ['_organization_id', ...keys].map(
    (column) => `raw.${quoted(column)} = typed.${quoted(column)}`,
  )
  const row = yield* one<{ json: string }>(
    `
      SELECT raw."_json" AS json
      FROM ${quoted(collection)} AS typed
      JOIN ${quoted(tableName(collection, 'raw'))} AS raw ON ${same.join(' AND ')}
      WHERE typed.${rowId} = :row::${rowIdType}
    `,
    { row: misfitRow },
  )
  return row && misfitIn(asJsonObject(parseExact(row.json)), main)
}

function* readBefore(job: JobNames, table: string) {
  const counts = yield* all<ColumnCount<StoredTime>>(
    `
      SELECT "column", filled, misfits, objects, misfit, last_filled_at AS "lastFilledAt", emptied
      FROM sync_column_counts
      WHERE organization_id = :organization AND collection = :table
    `,
    { organization: job.organization, table },
  )
  const row = yield* one<{ asOf: StoredTime | null }>(
    `SELECT columns_as_of AS "asOf" FROM sync_jobs WHERE ${OF_JOB}`,
    job,
  )
  return { counts, asOf: row?.asOf ?? null }
}

/** A column of a job whose values do not fit it, or that became empty: as of the job's last complete full walk. */
export interface ColumnTrouble {
  organization_id: string
  organization: string
  collection: string
  /** Of an array of the collection, whose elements are counted; null: the column is in the collection's table. */
  view: string | null
  column: string
  type: ColumnType
  /** Where values are that do not fit it; null if there is no such column. */
  text_column: string | null
  /** Live rows whose value is in the text column, or is an object. */
  misfits: number
  /** How many of them are objects, whose fields have columns of their own. */
  objects: number
  /** What one of them is. */
  misfit: Misfit | null
  /** 1: an earlier walk found values in it, and now it is empty. */
  emptied: 0 | 1
}

/** All columns with such trouble. Jobs without rows have none to report. In a copy there is none: it lacks the counts of each list. */
export function columnTroubles(): Rule<ColumnTrouble[]> {
  return all(`
    WITH
      known AS (
        SELECT collection AS "table", "column", path, type, role FROM sync_known_columns
        UNION ALL
        SELECT view, "column", path, type, role FROM sync_view_columns
      )
    SELECT
      count.organization_id,
      organizations.name AS organization,
      job.collection,
      CASE WHEN count.collection <> job.collection THEN count.collection END AS view,
      count."column",
      known.type,
      beside."column" AS text_column,
      count.misfits + count.objects AS misfits,
      count.objects,
      count.misfit,
      count.emptied
    FROM sync_column_counts AS count
    JOIN sync_jobs AS job
      ON job.organization_id = count.organization_id
      AND job.collection || '__' = substr(count.collection || '__', 1, length(job.collection) + 2)
    JOIN organizations ON organizations.id = count.organization_id
    JOIN known ON known."table" = count.collection AND known."column" = count."column"
    LEFT JOIN known AS beside
      ON beside."table" = known."table" AND beside.path = known.path AND beside.role = 'text'
    WHERE (count.misfits + count.objects > 0 OR count.emptied = 1) AND job.rows > 0
    ORDER BY count.collection, count."column", organizations.name
  `)
}
