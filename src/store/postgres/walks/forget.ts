import { deleteHoldings, endJob, markForgotten } from '../../core/forget.ts'
import { asOwner, type JobNames } from '../../core/jobs.ts'
import type { Rule } from '../../core/sql.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { newEpoch } from '../leases.ts'
import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import { dropTables, isWithoutRows } from '../tables/configured.ts'
import { findCollection } from '../tables/records.ts'

/** Rows of one transaction. */
const AT_ONCE = 5000

/**
 * Deletes what the mirror holds of a job whose lock this process has, in batches. At once the list looks as if it was never
 * read, so that after a kill the same command does the rest. Returns false after the signal to stop. Throws JobError (`BUSY`) once
 * another worker has taken the job: what that one writes stays.
 * @param isConfigured Keeps the row of the job, as of one without rows, since a sync will need it.
 */
export async function forgetJob(
  server: Server,
  job: JobNames,
  { isConfigured, signal, at }: { isConfigured: boolean; signal: AbortSignal; at: string },
): Promise<boolean> {
  // From now on no worker that was cut off writes anything of the job.
  const epoch = await server.transaction((sql) => runRule(sql, newEpoch(job)))
  if (epoch === null) return true
  const owner = { job, epoch, name: `${job.organization} ${job.collection}` }
  const writing = <T>(begin: () => Rule<T>) =>
    server.transaction((sql) => runRule(sql, asOwner(POSTGRES, owner, begin)))
  await writing(() => markForgotten(job, at))
  for (let isDone = false; !isDone; ) {
    if (signal.aborted) return false
    isDone = await writing(() => deleteHoldings(POSTGRES, job, AT_ONCE))
  }
  await writing(() => endJob(job, isConfigured))
  return true
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
