import { type JobNames, OF_JOB } from '../../core/jobs.ts'
import { one } from '../../core/sql.ts'
import { runRule } from '../driver.ts'
import { overtaken } from '../leases.ts'
import type { Server } from '../server/server.ts'
import type { Sql } from '../sql.ts'

/**
 * After a failover that lost commits the sequence may give numbers again that living workers have: by chance, none of them is
 * whole the same.
 */
export const NEW_EPOCH = "nextval('sync_epochs') * 1000000 + floor(random() * 1000000)::bigint"

/**
 * Runs `task` in a transaction, unless another worker has the job by now: then it throws JobError (`BUSY`). What `task` reads is as of
 * after all that others wrote of the job, since they lock its row, too.
 * @param name Of the job, for the message.
 */
export function asOwner<T>(
  server: Server,
  { job, epoch, name }: { job: JobNames; epoch: number; name: string },
  task: (sql: Sql) => Promise<T>,
): Promise<T> {
  return server.transaction(async (sql) => {
    const lock = `SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND epoch = :epoch FOR NO KEY UPDATE`
    if ((await runRule(sql, one(lock, { ...job, epoch }))) === null) throw overtaken(name)
    return task(sql)
  })
}
