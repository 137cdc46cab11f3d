import type { JobError } from '../../errors.ts'
import type { OwnerWork } from '../../sync/owner-work.ts'
import type { Acquired, Lease } from '../../sync/store.ts'
import type { Job, Trigger } from '../../sync/types.ts'
import { type JobNames, namesOf, OF_JOB, refreshOf } from './jobs.ts'
import { assertAddressKept } from './settings.ts'
import { all, one, type Rule, run } from './sql.ts'

// Which process works on which job, and which process is a `start`. Whether that process lives shows in its lock, not in these rows.

/** Throws JobError if this process must not read lists into the mirror any more. Call it before a job is taken. */
export function* prepareJob({ organization: { id, name } }: Job, baseUrl: string): Rule<void> {
  yield* assertAddressKept(baseUrl)
  // `forget` may have deleted the organization since this process registered it.
  yield* run(
    'INSERT INTO organizations (id, name, configured) VALUES (:id, :name, 1) ON CONFLICT (id) DO NOTHING',
    { id, name },
  )
}

/** The process that has a job, or had it when it died. */
export function* ownerOf(job: JobNames): Rule<string | null> {
  const row = yield* one<{ owner: string | null }>(`SELECT owner FROM sync_jobs WHERE ${OF_JOB}`, job)
  return row?.owner ?? null
}

/** Gives a job back, unless another process has taken it since. `own`: this process's name, or on a server the epoch of its lease. */
export function releaseJob(job: JobNames, own: { owner: string } | { epoch: number }): Rule<number> {
  const [name] = Object.keys(own)
  return run(`UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE ${OF_JOB} AND ${name} = :${name}`, {
    ...job,
    ...own,
  })
}

/** What is known of a job that this process has taken. */
export function* leaseOf(job: Job, refusal: JobError | null): Rule<Lease> {
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
export function* heldByOther(job: Job): Rule<Extract<Acquired, { heldBy: string }>> {
  const owner = yield* ownerOf(namesOf(job))
  return owner === null
    ? { heldBy: 'another process', work: null }
    : { heldBy: owner, work: yield* workOf(namesOf(job), owner) }
}

function* workOf(job: JobNames, owner: string): Rule<OwnerWork> {
  const known = yield* one<Record<'isVerify' | 'isDaemon', number>>(
    `
      SELECT
        verifying AS "isVerify",
        CASE WHEN EXISTS (SELECT 1 FROM sync_settings WHERE name = :daemon) THEN 1 ELSE 0 END AS "isDaemon"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    { ...job, daemon: DAEMON + owner },
  )
  const running = yield* one<{ trigger: Trigger }>(RUNNING_RUN, job)
  return {
    isDaemon: known?.isDaemon === 1,
    isVerify: known?.isVerify === 1,
    trigger: running?.trigger ?? null,
  }
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

/** A `start` that runs, or died before it could remove its record. */
export interface DaemonRecord {
  pid: number
  /** When it began. */
  since: string
  /** Whether it lives; null if this user cannot tell. */
  running: boolean | null
  /** The fingerprint of its configuration. */
  configuration: string
}

/** A `start` names itself in `sync_settings`: this, then the name that its lock has. */
export const DAEMON = 'daemon '

/** Every `start` that runs, or died, the oldest first. Anyone who may write the mirror can change these records. */
export function* announcedDaemons(): Rule<{ owner: string; value: string }[]> {
  const rows = yield* all<{ name: string; value: string }>(
    `SELECT name, value FROM sync_settings WHERE name LIKE '${DAEMON}%' ORDER BY value, name LIMIT 1000`,
  )
  return rows.map(({ name, value }) => ({ owner: name.slice(DAEMON.length), value }))
}
