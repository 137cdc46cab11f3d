import { parseExact } from '../../json/exact.ts'
import { asJsonObject } from '../../json/value.ts'
import { keyColumnNames, splitKey } from '../columns/catalog.ts'
import {
  type ColumnCount,
  type CountedRow,
  countingSql,
  type Found,
  foundIn,
  type Misfit,
  misfitIn,
  nextCounts,
} from '../columns/counts.ts'
import { type JobNames, OF_JOB } from './jobs.ts'
import {
  all,
  type Dialect,
  one,
  quoted,
  type Rule,
  run,
  type StoredTime,
  tableName,
  textOf,
  upsert,
} from './sql.ts'
import { knownKey, loadColumns } from './tables.ts'

// `sync_column_counts`. The decisions are in columns/counts.ts.

/** Whether rows of the job changed since its values were counted, or may have. */
export function* isUncounted(job: JobNames): Rule<boolean> {
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

/** The jobs of a collection whose values were counted: they are to be counted again once these were made anew. */
export function countedJobs(collection: string): Rule<JobNames[]> {
  return all(
    `
      SELECT organization_id AS organization, collection
      FROM sync_jobs
      WHERE collection = :collection AND columns_run IS NOT NULL
      ORDER BY organization_id
    `,
    { collection },
  )
}

/** Counts the values of a job in each column. Call it with the job's row locked. */
export function* countColumns(dialect: Dialect, job: JobNames): Rule<void> {
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
  const found: (Found<string | number> & { misfit: Misfit | null })[] = []
  for (const counted of foundIn<string | number>(columns, row))
    found.push({ ...counted, misfit: yield* misfitOf(dialect, collection, keys, counted) })
  const before = yield* readBefore(job)
  const counts = nextCounts(found, Number(row.rows), before)
  yield* upsert(
    dialect,
    COUNTS,
    counts.map(({ column, filled, misfits, misfit, lastFilledAt, emptied }) => {
      const lastFilled = lastFilledAt === null ? null : textOf(lastFilledAt)
      return [organization, collection, column, filled, misfits, misfit, lastFilled, emptied]
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
    misfit: 'text',
    last_filled_at: 'timestamptz',
    emptied: 'bigint',
  },
  key: ['organization_id', 'collection', 'column'],
}

function* misfitOf(
  { rowId, rowIdType }: Dialect,
  collection: string,
  keys: readonly string[],
  { main, misfitRow }: Found<string | number>,
): Rule<Misfit | null> {
  if (misfitRow === null) return null
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

function* readBefore(job: JobNames) {
  const counts = yield* all<ColumnCount<StoredTime>>(
    `
      SELECT "column", filled, misfits, misfit, last_filled_at AS "lastFilledAt", emptied
      FROM sync_column_counts
      WHERE ${OF_JOB}
    `,
    job,
  )
  const row = yield* one<{ asOf: StoredTime | null }>(
    `SELECT columns_as_of AS "asOf" FROM sync_jobs WHERE ${OF_JOB}`,
    job,
  )
  return { counts, asOf: row?.asOf ?? null }
}
