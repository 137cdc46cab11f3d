import { parseExact } from '../../../json/exact.ts'
import { asJsonObject } from '../../../json/value.ts'
import { keyColumnNames, splitKey } from '../../columns/catalog.ts'
import {
  type ColumnCount,
  type CountedRow,
  countingSql,
  type Found,
  foundIn,
  misfitIn,
  nextCounts,
} from '../../columns/counts.ts'
import { type Connection, quoted } from '../sql.ts'
import { knownKey, loadColumns } from '../tables/column-records.ts'
import { tableName } from '../tables/declarations.ts'
import { OF_JOB } from './jobs.ts'

// `sync_column_counts`. The decisions are in store/columns/counts.ts.

/** The names of a job, as parameters. */
export interface CountedJob {
  organization: string
  collection: string
}

const LAST_RUN = `(SELECT max(id) FROM sync_runs WHERE ${OF_JOB})`

/** Whether rows of the job changed since its values were counted, or may have. */
export function isUncounted(connection: Connection, job: CountedJob): boolean {
  const changed = connection.prepare(`
    SELECT
      columns_run IS NULL OR EXISTS (
        SELECT 1 FROM sync_runs
        WHERE ${OF_JOB} AND id > sync_jobs.columns_run AND rows_added + rows_changed + rows_removed > 0
      )
    FROM sync_jobs
    WHERE ${OF_JOB}
  `)
  return changed.pluck().get(job) === 1
}

/** At the end of a complete full walk, after its removals: counts the values again if rows changed. */
export function recordColumns(connection: Connection, job: CountedJob, walkId: number): void {
  if (isUncounted(connection, job)) countColumns(connection, job)
  const update = `
    UPDATE sync_jobs
    SET columns_as_of = (SELECT started_at FROM sync_walks WHERE id = :walkId), columns_run = ${LAST_RUN}
    WHERE ${OF_JOB}
  `
  connection.prepare(update).run({ ...job, walkId })
}

/** After the values of a collection were made anew: counts those of each job that was counted. */
export function recountColumns(connection: Connection, collection: string): void {
  const counted = connection
    .prepare('SELECT organization_id FROM sync_jobs WHERE collection = ? AND columns_run IS NOT NULL')
    .pluck()
  for (const organization of counted.all(collection) as string[])
    countColumns(connection, { organization, collection })
}

function countColumns(connection: Connection, job: CountedJob): void {
  const columns = loadColumns(connection, job.collection)
  const key = knownKey(connection, job.collection)
  if (key === null) return
  const counting = countingSql(columns, { quoted, rowId: '_rowid_' })
  const row = connection
    .prepare(`SELECT ${counting} FROM ${quoted(job.collection)} WHERE "_organization_id" = ?`)
    .get(job.organization) as CountedRow
  const itemOf = prepareItem(connection, job.collection, keyColumnNames(splitKey(key)))
  const found = foundIn<number>(columns, row).map((one) => ({ ...one, misfit: misfitOf(one, itemOf) }))
  save(connection, job, nextCounts(found, Number(row.rows), readBefore(connection, job)))
}

function misfitOf({ main, misfitRow }: Found<number>, itemOf: (row: number) => string | undefined) {
  const json = misfitRow === null ? undefined : itemOf(misfitRow)
  return json === undefined ? null : misfitIn(asJsonObject(parseExact(json)), main)
}

/** Returns a function that reads the item of a typed row. */
function prepareItem(
  connection: Connection,
  collection: string,
  keys: readonly string[],
): (row: number) => string | undefined {
  const same = ['_organization_id', ...keys].map(
    (column) => `raw.${quoted(column)} = typed.${quoted(column)}`,
  )
  const find = connection.prepare(`
    SELECT raw."_json"
    FROM ${quoted(collection)} AS typed
    JOIN ${quoted(tableName(collection, 'raw'))} AS raw ON ${same.join(' AND ')}
    WHERE typed._rowid_ = ?
  `)
  return (row) => find.pluck().get(row) as string | undefined
}

function readBefore(connection: Connection, job: CountedJob) {
  const counts = connection
    .prepare(`
      SELECT "column", filled, misfits, misfit, last_filled_at AS lastFilledAt, emptied
      FROM sync_column_counts
      WHERE ${OF_JOB}
    `)
    .all(job) as ColumnCount<string>[]
  const asOf = connection.prepare(`SELECT columns_as_of FROM sync_jobs WHERE ${OF_JOB}`).pluck().get(job)
  return { counts, asOf: (asOf ?? null) as string | null }
}

function save(connection: Connection, job: CountedJob, counts: readonly ColumnCount<string>[]): void {
  const insert = connection.prepare(`
    INSERT OR REPLACE INTO sync_column_counts (
      organization_id, collection, "column", filled, misfits, misfit, last_filled_at, emptied
    )
    VALUES (:organization, :collection, :column, :filled, :misfits, :misfit, :lastFilledAt, :emptied)
  `)
  for (const count of counts) insert.run({ ...job, ...count })
}
