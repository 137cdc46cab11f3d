import type { Job } from '../../../sync/types.ts'
import { type PruneTimes, pruneSql } from '../../prune.ts'
import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import { tableName } from '../tables/shape.ts'
import { ofJob } from './job.ts'

/** Lines of one statement. */
const PRUNED_AT_ONCE = 5000

const SQL = pruneSql({
  organization: '$1',
  collection: '$2',
  before: '$3',
  briefBefore: '$4',
  overlapBefore: '$3',
  most: String(PRUNED_AT_ONCE),
  join: 'JOIN',
  line: 'ctid',
  order: 'sequence',
})

/**
 * Deletes, in batches, what a job's runs left and no walk needs. After a signal to stop, the next run deletes the rest.
 * @param versionsBefore Superseded versions that ended before this time go; null: none do.
 */
export async function pruneJob(
  server: Server,
  job: Job,
  { before, briefBefore, overlapBefore }: PruneTimes,
  versionsBefore: string | null,
  signal: AbortSignal,
): Promise<void> {
  await server.rows(SQL.distrust, [...ofJob(job), overlapBefore])
  const inBatches = async (statement: string, values: readonly unknown[]) => {
    let count = PRUNED_AT_ONCE
    while (count >= PRUNED_AT_ONCE && !signal.aborted)
      count = (await server.rows(`${statement} RETURNING 1`, values)).length
  }
  for (const statement of SQL.deletes) await inBatches(statement, [...ofJob(job), before, briefBefore])
  if (versionsBefore === null) return
  const history = quoted(tableName(job.collection.name, 'history'))
  await inBatches(
    `
      DELETE FROM ${history}
      WHERE ctid IN (
        SELECT ctid FROM ${history} WHERE "_organization_id" = $1 AND "_valid_to" < $2 ORDER BY "_valid_to" LIMIT ${PRUNED_AT_ONCE}
      )
    `,
    [job.organization.id, versionsBefore],
  )
}
