import type { OwnerWork, RunningRun } from '../../../sync/lease/owner.ts'
import type { Job } from '../../../sync/types.ts'
import type { Sql } from '../sql.ts'
import { OF_JOB, ofJob, timeOf } from './job.ts'

/** Who has a job whose lock is taken, and what that one does. */
export async function readOwner(
  sql: Pick<Sql, 'rows'>,
  job: Job,
): Promise<{ heldBy: string; work: OwnerWork | null }> {
  const [known] = await sql.rows<{ owner: string | null; isDaemon: boolean }>(
    `
      SELECT owner, EXISTS (SELECT 1 FROM sync_settings WHERE name = 'daemon ' || owner) AS "isDaemon"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    ofJob(job),
  )
  if (!known || known.owner === null) return { heldBy: 'one that begins', work: null }
  const [run] = await sql.rows<RunRow>(RUN_SQL, ofJob(job))
  return { heldBy: known.owner, work: { isDaemon: known.isDaemon, run: run ? runningRun(run) : null } }
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

const RUN_SQL = `
  SELECT
    run.trigger,
    run.started_at AS "startedAt",
    run.pages,
    run.rows_seen AS "rowsSeen",
    walk.next_page AS "nextPage",
    walk.rows_seen AS "walkSeen",
    walk.total,
    walk.updated_at AS "updatedAt",
    (
      SELECT max(greatest(closed_until, waiting_until))
      FROM sync_gates
      WHERE scope IN ('all', run.organization_id, organizations.last_fingerprint)
    ) AS "waitingUntil"
  FROM sync_runs AS run
  LEFT JOIN organizations ON organizations.id = run.organization_id
  LEFT JOIN sync_walks AS walk ON walk.id = run.walk_id
  WHERE run.organization_id = $1 AND run.collection = $2 AND run.status = 'running'
  -- A refresh may run within a walk.
  ORDER BY run.walk_id IS NULL, run.id DESC
  LIMIT 1
`
