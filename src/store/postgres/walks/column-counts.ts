import { parseExact } from '../../../json/exact.ts'
import { asJsonObject } from '../../../json/value.ts'
import { splitKey } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
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
import { findCollection } from '../tables/records.ts'
import { keyNames, tableName } from '../tables/shape.ts'
import { OF_JOB } from './job.ts'

// `sync_column_counts`. The decisions are in store/columns/counts.ts.

type JobNames = readonly [organization: string, collection: string]

/**
 * At the end of a complete full walk, after its removals: counts the values again if rows of the job changed since they were
 * counted. Call it with the job's row locked.
 */
export async function recordColumns(sql: Sql, job: JobNames, walkId: number): Promise<void> {
  const before = await readBefore(sql, job)
  await save(sql, job, before.isCounted ? [] : await countColumns(sql, job, before), walkId)
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
      await save(sql, job, await countColumns(sql, job, await readBefore(sql, job)), null)
    })
}

/** Times in milliseconds. */
interface Before {
  columns: Column[]
  counts: ColumnCount<number>[]
  asOf: number | null
  /** No row of the job changed since. */
  isCounted: boolean
}

async function readBefore(sql: Sql, job: JobNames): Promise<Before> {
  type Line = Omit<Column, 'wide'> &
    Omit<ColumnCount<number>, 'column' | 'filled'> & {
      wide: number
      filled: number | null
      asOf: number | null
      counted: boolean
    }
  const lines = await sql.rows<Line>(
    `
      WITH job AS MATERIALIZED (
        SELECT
          columns_as_of,
          columns_run IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM sync_runs
            WHERE ${OF_JOB} AND id > sync_jobs.columns_run AND rows_added + rows_changed + rows_removed > 0
          ) AS counted
        FROM sync_jobs
        WHERE ${OF_JOB}
      )
      SELECT
        known."column" AS name, known.path, known.type, known.role, known.wide,
        count.filled, count.misfits, count.misfit, count.last_filled_at AS "lastFilledAt", count.emptied,
        job.columns_as_of AS "asOf", job.counted
      FROM sync_known_columns AS known
      CROSS JOIN job
      LEFT JOIN sync_column_counts AS count
        ON count.organization_id = $1 AND count.collection = known.collection AND count."column" = known."column"
      WHERE known.collection = $2
      ORDER BY known.sequence
    `,
    job,
  )
  return {
    columns: lines.map(({ name, path, type, role, wide }) => ({ name, path, type, role, wide: wide === 1 })),
    counts: lines.flatMap(({ name, filled, misfits, misfit, lastFilledAt, emptied }) =>
      filled === null ? [] : [{ column: name, filled, misfits, misfit, lastFilledAt, emptied }],
    ),
    asOf: lines[0]?.asOf ?? null,
    isCounted: lines.every(({ counted }) => counted),
  }
}

async function countColumns(sql: Sql, job: JobNames, before: Before): Promise<ColumnCount<number>[]> {
  const [organization, collection] = job
  const { columns } = before
  const [row] = await sql.rows<CountedRow>(
    `SELECT ${countingSql(columns, { quoted, rowId: 'ctid' })} FROM ${quoted(collection)} WHERE "_organization_id" = $1`,
    [organization],
  )
  if (!row) return []
  const found: (Found<string> & { misfit: Misfit | null })[] = []
  for (const one of foundIn<string>(columns, row))
    found.push({ ...one, misfit: await misfitOf(sql, collection, one) })
  return nextCounts(found, Number(row.rows), before)
}

async function misfitOf(
  sql: Sql,
  collection: string,
  { main, misfitRow }: Found<string>,
): Promise<Misfit | null> {
  const record = misfitRow === null ? null : await findCollection(sql, collection)
  if (!record) return null
  const keys = keyNames(splitKey(record.key))
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

/** `walkId`: the full walk at whose end they were counted; null: there is a later one. */
async function save(
  sql: Sql,
  job: JobNames,
  counts: readonly ColumnCount<number>[],
  walkId: number | null,
): Promise<void> {
  const list = <K extends keyof ColumnCount<number>>(field: K) => counts.map((count) => count[field])
  const times = list('lastFilledAt').map((time) => (time === null ? null : new Date(time).toISOString()))
  await sql.rows(
    `
      WITH saved AS (
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
      )
      UPDATE sync_jobs
      SET
        columns_as_of = (SELECT started_at FROM sync_walks WHERE id = $9),
        columns_run = (SELECT max(id) FROM sync_runs WHERE ${OF_JOB})
      WHERE ${OF_JOB} AND $9::bigint IS NOT NULL
    `,
    [...job, list('column'), list('filled'), list('misfits'), list('misfit'), times, list('emptied'), walkId],
  )
}
