import { sortedJson } from '../../../json/value.ts'
import type { Job } from '../../../sync/types.ts'
import { overtaken } from '../leases.ts'
import type { Server } from '../server/server.ts'
import type { Sql } from '../sql.ts'

/** The condition for the rows of a job, with the parameters $1 and $2 of `ofJob`. */
export const OF_JOB = 'organization_id = $1 AND collection = $2'

/**
 * After a failover that lost commits the sequence may give numbers again that living workers have: by chance, none of them is
 * whole the same.
 */
export const NEW_EPOCH = "nextval('sync_epochs') * 1000000 + floor(random() * 1000000)::bigint"

export function ofJob({
  organization,
  collection,
}: Pick<Job, 'organization' | 'collection'>): [string, string] {
  return [organization.id, collection.name]
}

/** By the configured filters: those of a backfill only narrow the list. */
export function scopeOf({ collection }: Job): [path: string, filters: string] {
  return [collection.path, sortedJson(collection.scope ?? collection.filters)]
}

export function nameOf({ organization, collection }: Job): string {
  return `${organization.name} ${collection.name}`
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/**
 * Runs `task` in a transaction, unless another worker has the job by now: then it throws JobError (`BUSY`). What `task` reads is as of
 * after all that others wrote of the job, since they lock its row, too.
 * @param name Of the job, for the message.
 */
export function asOwner<T>(
  server: Server,
  {
    job,
    epoch,
    name,
  }: { job: readonly [organization: string, collection: string]; epoch: number; name: string },
  task: (sql: Sql) => Promise<T>,
): Promise<T> {
  return server.transaction(async (sql) => {
    const locked = `SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND epoch = $3 FOR NO KEY UPDATE`
    const rows = await sql.rows(locked, [...job, epoch])
    if (rows.length === 0) throw overtaken(name)
    return task(sql)
  })
}
