import type { OwnerWork, RunningRun } from '../../../sync/lease.ts'
import type { Job } from '../../../sync/types.ts'
import { runningRunSql } from '../../status.ts'
import type { Sql } from '../sql.ts'
import { OF_JOB, ofJob, timeOf } from './job.ts'

/** Who has a job whose lock is taken, and what that one does. */
export async function readOwner(
  sql: Pick<Sql, 'rows'>,
  job: Job,
): Promise<{ heldBy: string; work: OwnerWork | null }> {
  const [known] = await sql.rows<{ owner: string | null; isDaemon: boolean; isVerify: boolean }>(
    `
      SELECT
        owner,
        verifying = 1 AS "isVerify",
        EXISTS (SELECT 1 FROM sync_settings WHERE name = 'daemon ' || owner) AS "isDaemon"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    ofJob(job),
  )
  if (!known || known.owner === null) return { heldBy: 'another process', work: null }
  const [run] = await sql.rows<RunRow>(RUN_SQL, ofJob(job))
  const { owner: heldBy, isDaemon, isVerify } = known
  return { heldBy, work: { isDaemon, isVerify, run: run ? runningRun(run) : null } }
}

/** Times come as epoch milliseconds. */
interface RunRow extends Omit<RunningRun, 'startedAt' | 'updatedAt' | 'waitingUntil'> {
  startedAt: number
  updatedAt: number | null
  waitingUntil: number | null
}

function runningRun({ startedAt, updatedAt, waitingUntil, ...run }: RunRow): RunningRun {
  return {
    ...run,
    startedAt: timeOf(startedAt),
    updatedAt: timeOrNull(updatedAt),
    waitingUntil: timeOrNull(waitingUntil),
  }
}

function timeOrNull(time: number | null): string | null {
  return time === null ? null : timeOf(time)
}

const RUN_SQL = runningRunSql('$1', '$2')
