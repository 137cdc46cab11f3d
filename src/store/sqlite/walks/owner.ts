import type { OwnerWork, RunningRun } from '../../../sync/lease/owner.ts'
import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import { nameOf } from './jobs.ts'

/** Returns the function that reads what the owner of a job does. `owner`: the name of its lock file. */
export function createOwnerReader(
  connection: Connection,
): (job: Pick<Job, 'organization' | 'collection'>, owner: string) => OwnerWork {
  const findDaemon = connection.prepare("SELECT 1 FROM sync_settings WHERE name = 'daemon ' || ?").pluck()
  const findRun = connection.prepare(`
    SELECT
      run.trigger,
      run.started_at AS startedAt,
      run.pages,
      run.rows_seen AS rowsSeen,
      walk.next_page AS nextPage,
      walk.rows_seen AS walkSeen,
      walk.total,
      walk.updated_at AS updatedAt,
      (
        SELECT max(max(closed_until, coalesce(waiting_until, '')))
        FROM sync_gates
        WHERE scope IN ('all', run.organization_id, organizations.last_fingerprint)
      ) AS waitingUntil
    FROM sync_runs AS run
    LEFT JOIN organizations ON organizations.id = run.organization_id
    LEFT JOIN sync_walks AS walk ON walk.id = run.walk_id
    WHERE run.organization_id = :organization AND run.collection = :collection AND run.status = 'running'
    -- A refresh may run within a walk.
    ORDER BY run.walk_id IS NULL, run.id DESC
    LIMIT 1
  `)
  return (job, owner) => ({
    isDaemon: findDaemon.get(owner) === 1,
    run: (findRun.get(nameOf(job)) as RunningRun | undefined) ?? null,
  })
}
