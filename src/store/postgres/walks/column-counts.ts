import { parseExact } from '../../../json/exact.ts'
import { asJsonObject } from '../../../json/value.ts'
import { splitKey } from '../../columns/catalog.ts'
import {
  type ColumnCount,
  type CountedRow,
  countingSql,
  type Found,
  foundIn,
  type Misfit,
  misfitIn,
  nextCounts,
} from '../../columns/counts.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { findCollection, loadCatalog } from '../tables/records.ts'
import { keyNames, tableName } from '../tables/shape.ts'
import { OF_JOB } from './job.ts'

// `sync_column_counts`. The decisions are in store/columns/counts.ts.

type JobNames = readonly [organization: string, collection: string]

/**
 * At the end of a complete full walk, after its removals: counts the values again if rows of the job changed since they were
 * counted. Call it with the job's row locked.
 */
export async function recordColumns(sql: Sql, job: JobNames, walkId: number): Promise<void> {
  const [state] = await sql.rows<{ uncounted: boolean }>(
    `
      SELECT
        columns_run IS NULL OR EXISTS (
          SELECT 1 FROM sync_runs
          WHERE ${OF_JOB} AND id > sync_jobs.columns_run AND rows_added + rows_changed + rows_removed > 0
        ) AS uncounted
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    job,
  )
  if (state?.uncounted) await countColumns(sql, job)
  await sql.rows(
    `
      UPDATE sync_jobs
      SET
        columns_as_of = (SELECT started_at FROM sync_walks WHERE id = $3),
        columns_run = (SELECT max(id) FROM sync_runs WHERE ${OF_JOB})
      WHERE ${OF_JOB}
    `,
    [...job, walkId],
  )
}

/** After the values of a collection were made anew: counts those of each job that was counted. */
export async function recountColumns(server: Server, collection: string): Promise<void> {
  const jobs = await server.rows<{ organization: string }>(
    'SELECT organization_id AS organization FROM sync_jobs WHERE collection = $1 AND columns_run IS NOT NULL ORDER BY 1',
    [collection],
  )
  for (const { organization } of jobs)
    await server.transaction(async (sql) => {
      const job = [organization, collection] as const
      await sql.rows(`SELECT 1 FROM sync_jobs WHERE ${OF_JOB} FOR NO KEY UPDATE`, job)
      await countColumns(sql, job)
    })
}

async function countColumns(sql: Sql, job: JobNames): Promise<void> {
  const [organization, collection] = job
  const record = await findCollection(sql, collection)
  if (!record) return
  const keyPaths = splitKey(record.key)
  const { columns } = await loadCatalog(sql, collection, keyPaths)
  const [row] = await sql.rows<CountedRow>(
    `SELECT ${countingSql(columns, { quoted, rowId: 'ctid' })} FROM ${quoted(collection)} WHERE "_organization_id" = $1`,
    [organization],
  )
  if (!row) return
  const found: (Found<string> & { misfit: Misfit | null })[] = []
  for (const one of foundIn<string>(columns, row))
    found.push({ ...one, misfit: await misfitOf(sql, collection, keyNames(keyPaths), one) })
  await save(sql, job, nextCounts(found, Number(row.rows), await readBefore(sql, job)))
}

async function misfitOf(
  sql: Sql,
  collection: string,
  keys: readonly string[],
  { main, misfitRow }: Found<string>,
): Promise<Misfit | null> {
  if (misfitRow === null) return null
  const same = ['_organization_id', ...keys].map(
    (column) => `raw.${quoted(column)} = typed.${quoted(column)}`,
  )
  const [row] = await sql.rows<{ json: string }>(
    `
      SELECT raw."_json" AS json
      FROM ${quoted(collection)} AS typed
      JOIN ${quoted(tableName(collection, 'raw'))} AS raw ON ${same.join(' AND ')}
      WHERE typed.ctid = $1::tid
    `,
    [misfitRow],
  )
  return row ? misfitIn(asJsonObject(parseExact(row.json)), main) : null
}

/** Times in milliseconds. */
async function readBefore(sql: Sql, job: JobNames) {
  const counts = await sql.rows<ColumnCount<number>>(
    `
      SELECT "column", filled, misfits, misfit, last_filled_at AS "lastFilledAt", emptied
      FROM sync_column_counts
      WHERE ${OF_JOB}
    `,
    job,
  )
  const [state] = await sql.rows<{ asOf: number | null }>(
    `SELECT columns_as_of AS "asOf" FROM sync_jobs WHERE ${OF_JOB}`,
    job,
  )
  return { counts, asOf: state?.asOf ?? null }
}

async function save(sql: Sql, job: JobNames, counts: readonly ColumnCount<number>[]): Promise<void> {
  const list = <K extends keyof ColumnCount<number>>(field: K) => counts.map((count) => count[field])
  const times = list('lastFilledAt').map((time) => (time === null ? null : new Date(time).toISOString()))
  await sql.rows(
    `
      INSERT INTO sync_column_counts (organization_id, collection, "column", filled, misfits, misfit, last_filled_at, emptied)
      SELECT $1, $2, name, filled, misfits, misfit, last_filled_at, emptied
      FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::timestamptz[], $8::bigint[])
        AS new (name, filled, misfits, misfit, last_filled_at, emptied)
      ON CONFLICT (organization_id, collection, "column") DO UPDATE
      SET
        filled = excluded.filled,
        misfits = excluded.misfits,
        misfit = excluded.misfit,
        last_filled_at = excluded.last_filled_at,
        emptied = excluded.emptied
    `,
    [...job, list('column'), list('filled'), list('misfits'), list('misfit'), times, list('emptied')],
  )
}
