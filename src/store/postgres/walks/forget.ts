import type { Holdings } from '../../sqlite/walks/holdings.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { dropTables, isWithoutRows } from '../tables/configured.ts'
import { findCollection } from '../tables/records.ts'
import { tableName } from '../tables/shape.ts'
import { asOwner, NEW_EPOCH, OF_JOB } from './job.ts'

/** One collection of an organization that `forget` deletes. */
export interface ForgottenJob {
  organizationId: string
  collection: string
}

/** Rows of one statement. */
const AT_ONCE = 5000

/** The tables that hold something of a job, by the number of `Holdings` that counts it, in the order of deletion. */
async function partsOf(
  sql: Pick<Sql, 'rows'>,
  { organizationId, collection }: ForgottenJob,
): Promise<{ counts: keyof Holdings | null; table: string; where: string; values: string[] }[]> {
  const ofJob = [organizationId, collection]
  const lines = (counts: keyof Holdings | null, table: string, where = OF_JOB) => ({
    counts,
    table,
    where,
    values: ofJob,
  })
  const rows = (counts: keyof Holdings | null, kind: 'typed' | 'raw' | 'history') => ({
    counts,
    table: quoted(tableName(collection, kind)),
    where: '"_organization_id" = $1',
    values: [organizationId],
  })
  const hasTables = (await findCollection(sql, collection)) !== null
  return [
    lines(null, 'sync_missing'),
    lines(null, 'sync_column_counts'),
    lines(null, 'sync_refreshed', `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`),
    lines('pages', 'sync_pages', `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`),
    lines('walks', 'sync_walks'),
    lines('runs', 'sync_runs'),
    lines('rejects', 'sync_rejects'),
    ...(hasTables ? [rows(null, 'typed'), rows('rows', 'raw'), rows('versions', 'history')] : []),
  ]
}

/** Counts what the mirror holds of a job. */
export async function holdingsOf(sql: Pick<Sql, 'rows'>, job: ForgottenJob): Promise<Holdings> {
  const held: Holdings = { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs: 0 }
  for (const { counts, table, where, values } of await partsOf(sql, job)) {
    if (counts === null) continue
    const [row] = await sql.rows<{ count: number }>(`SELECT count(*) FROM ${table} WHERE ${where}`, values)
    held[counts] = row?.count ?? 0
  }
  return held
}

/**
 * Deletes what the mirror holds of a job whose lock this process has, in batches. At once the list looks as if it was never
 * read, so that after a kill the same command does the rest. Returns false after the signal to stop. Throws JobError (`BUSY`) once
 * another worker has taken the job: what that one writes stays.
 * @param isConfigured Keeps the row of the job, as of one without rows, since a sync will need it.
 */
export async function forgetJob(
  server: Server,
  job: ForgottenJob,
  { isConfigured, signal, at }: { isConfigured: boolean; signal: AbortSignal; at: string },
): Promise<boolean> {
  const ofJob = [job.organizationId, job.collection] as const
  const epoch = await takeOver(server, ofJob)
  if (epoch === null) return true
  const owned = <T>(task: (sql: Sql) => Promise<T>) =>
    asOwner(server, { job: ofJob, epoch, name: ofJob.join(' ') }, task)
  await owned(async (sql) => {
    await sql.rows(
      `
        UPDATE sync_walks
        SET status = 'abandoned', coverage = NULL, expected_missed = NULL, finished_at = coalesce(finished_at, $3)
        WHERE ${OF_JOB}
      `,
      [...ofJob, at],
    )
    await sql.rows(
      `
        UPDATE sync_jobs
        SET rows = 0, removals_held = 0, held_why = NULL, scope_path = NULL, scope_filters = NULL, scope_mixed = 0,
          refresh = NULL, fresh_as_of = NULL, newest = NULL, columns_as_of = NULL, columns_run = NULL,
          failing_since = NULL, failing_by = NULL, failing_code = NULL, failing_message = NULL
        WHERE ${OF_JOB}
      `,
      ofJob,
    )
    await sql.rows(`DELETE FROM sync_runs WHERE ${OF_JOB}`, ofJob)
  })
  for (const { table, where, values } of await partsOf(server, job)) {
    const chosen = `SELECT ctid FROM ${table} WHERE ${where} LIMIT ${AT_ONCE}`
    for (let count = AT_ONCE; count === AT_ONCE; ) {
      if (signal.aborted) return false
      const gone = await owned((sql) =>
        sql.rows(`DELETE FROM ${table} WHERE ctid IN (${chosen}) RETURNING 1`, values),
      )
      count = gone.length
    }
  }
  if (!isConfigured) await owned((sql) => sql.rows(`DELETE FROM sync_jobs WHERE ${OF_JOB}`, ofJob))
  return true
}

/** From now on no worker that was cut off writes anything of the job. Null if there is no such job. */
function takeOver(server: Server, job: readonly [string, string]): Promise<number | null> {
  return server.transaction(async (sql) => {
    const [row] = await sql.rows<{ epoch: number }>(
      `UPDATE sync_jobs SET epoch = ${NEW_EPOCH} WHERE ${OF_JOB} RETURNING epoch`,
      job,
    )
    return row?.epoch ?? null
  })
}

/** Drops a collection's tables if nothing is left of it: its key can change then. Returns whether it did. */
export function dropUnused(server: Server, collection: string): Promise<boolean> {
  return server.transaction(async (sql) => {
    if ((await findCollection(sql, collection)) === null) return false
    await sql.exec(`LOCK TABLE ${quoted(collection)} IN ACCESS EXCLUSIVE MODE`)
    const rejects = await sql.rows('SELECT 1 FROM sync_rejects WHERE collection = $1 LIMIT 1', [collection])
    if (rejects.length > 0 || !(await isWithoutRows(sql, collection))) return false
    await dropTables(sql, collection)
    return true
  })
}

/**
 * Deletes an unconfigured organization once it has no jobs, with its hold. Never call it for a configured one, whose refused
 * token would be sent again.
 */
export async function forgetOrganization(server: Server, organizationId: string): Promise<void> {
  await server.transaction(async (sql) => {
    const jobs = await sql.rows('SELECT 1 FROM sync_jobs WHERE organization_id = $1', [organizationId])
    if (jobs.length > 0) return
    await sql.rows('DELETE FROM organizations WHERE id = $1', [organizationId])
    await sql.rows('DELETE FROM sync_gates WHERE scope = $1', [organizationId])
  })
}

/** The organizations that the mirror knows, with their latest names. */
export function knownOrganizations(sql: Pick<Sql, 'rows'>): Promise<{ id: string; name: string }[]> {
  return sql.rows('SELECT id, name FROM organizations ORDER BY name, id')
}

/** The collections of an organization that the mirror has jobs of. */
export async function collectionsOf(sql: Pick<Sql, 'rows'>, organizationId: string): Promise<string[]> {
  const rows = await sql.rows<{ collection: string }>(
    'SELECT collection FROM sync_jobs WHERE organization_id = $1 ORDER BY collection',
    [organizationId],
  )
  return rows.map(({ collection }) => collection)
}
