import type { OwnerWork } from '../../sync/owner-work.ts'
import type { Acquired, Lease, Store } from '../../sync/store.ts'
import type { Job, Trigger } from '../../sync/types.ts'
import { namesOf, OF_JOB, ownJobOf, refreshOf } from './jobs.ts'
import type { Leases } from './leases.ts'
import { assertAddressKept } from './settings.ts'
import { type Dialect, one, type Rule, type Runner, run } from './sql.ts'
import { refusalOf } from './tables.ts'

// What a process that takes a job learns of it.

/** The methods of a store that take jobs and give them back. */
export function acquiring(
  { dialect, reading }: Pick<Runner, 'dialect' | 'reading'>,
  leases: Leases,
  baseUrl: string,
): Pick<Store, 'acquire' | 'release'> {
  return {
    async acquire(job, isVerify = false) {
      const lease = await leases.take(namesOf(job), isVerify, function* () {
        yield* prepareJob(job, baseUrl)
        return yield* leaseOf(dialect, job)
      })
      return lease ? { lease } : reading(heldByOther(job))
    },
    release: (lease) => leases.release(ownJobOf(lease)),
  }
}

/** Throws JobError if this process must not read lists into the mirror any more. */
function* prepareJob({ organization: { id, name } }: Job, baseUrl: string): Rule<void> {
  yield* assertAddressKept(baseUrl)
  // `forget` may have deleted the organization since this process registered it.
  yield* run(
    'INSERT INTO organizations (id, name, configured) VALUES (:id, :name, 1) ON CONFLICT (id) DO NOTHING',
    { id, name },
  )
}

/** What is known of a job that this process has taken. */
function* leaseOf(dialect: Dialect, job: Job): Rule<Omit<Lease, 'epoch'>> {
  const refusal = yield* refusalOf(dialect, job.collection)
  const trace = yield* one(
    `
      SELECT 1 FROM sync_walks WHERE ${OF_JOB}
      UNION ALL
      SELECT 1 FROM sync_rejects WHERE ${OF_JOB}
      UNION ALL
      SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND rows > 0
      LIMIT 1
    `,
    namesOf(job),
  )
  return {
    job,
    refusal,
    lastWalk: yield* lastOutcome(job),
    isNeverSynced: refusal === null && trace === null,
    ...(yield* refreshOf(job)),
  }
}

/** How the job's last complete full walk ended; null when it has none. */
function lastOutcome(job: Job): Rule<Lease['lastWalk']> {
  return one(
    `
      SELECT coverage
      FROM sync_walks
      WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full'
      ORDER BY id DESC
      LIMIT 1
    `,
    namesOf(job),
  )
}

/** Which process has a job that cannot be taken, and what it is doing. */
function* heldByOther(job: Job): Rule<Extract<Acquired, { heldBy: string }>> {
  const row = yield* one<{ owner: string | null } & Record<'isVerify' | 'isDaemon', number>>(
    `
      SELECT
        owner,
        verifying AS "isVerify",
        CASE WHEN EXISTS (
          SELECT 1 FROM sync_workers WHERE name = owner AND configuration IS NOT NULL
        ) THEN 1 ELSE 0 END AS "isDaemon"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    namesOf(job),
  )
  if (!row || row.owner === null) return { heldBy: 'another process', work: null }
  const running = yield* one<{ trigger: Trigger }>(RUNNING_RUN, namesOf(job))
  const work: OwnerWork = {
    isDaemon: row.isDaemon === 1,
    isVerify: row.isVerify === 1,
    trigger: running?.trigger ?? null,
  }
  return { heldBy: row.owner, work }
}

/** The run of a job that another process has. */
const RUNNING_RUN = `
  SELECT run.trigger
  FROM sync_runs AS run
  -- A process that compares a list has no run: a run that is open then was left by one that died.
  JOIN sync_jobs AS job
    ON job.organization_id = run.organization_id AND job.collection = run.collection AND job.verifying = 0
  WHERE run.organization_id = :organization AND run.collection = :collection AND run.status = 'running'
  -- A refresh may run within a walk.
  ORDER BY run.walk_id IS NULL, run.id DESC
  LIMIT 1
`
