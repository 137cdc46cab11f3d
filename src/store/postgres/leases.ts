import { type JobNames, OF_JOB, type OwnJob } from '../core/jobs.ts'
import { announcedDaemons, DAEMON, type DaemonRecord, releaseJob } from '../core/leases.ts'
import { removeSetting, saveSetting } from '../core/settings.ts'
import { all, one, type Rule, run, timeOf } from '../core/sql.ts'
import { runRule, type Statements } from './driver.ts'
import type { Server } from './server/server.ts'

/**
 * Which worker works on which job: the job's row names its owner, and `sync_workers` has each worker that lives. A worker says so again every
 * few seconds. One that died is buried at once by another on its own machine, else by whoever has not heard it for a while: its row is deleted,
 * and its jobs are free. A worker that was stopped, or cut off, and is overtaken, writes nothing afterwards: each commit checks the job's epoch.
 */
export interface Leases {
  /** The name of this worker. */
  name: string
  /** Takes a job, and runs `begin` in the same transaction. Returns null if a living worker has the job, be it this one. */
  take<T extends object = object>(
    job: JobNames,
    isVerify: boolean,
    begin?: () => Rule<T>,
  ): Promise<Taken<T> | null>
  release(job: Pick<OwnJob, 'job' | 'epoch'>): Promise<void>
  /** Says that this worker lives. Gives back the jobs that name it though it does not have them. */
  beat(): Promise<void>
  /** Buries the others that died. */
  bury(): Promise<void>
  hasJobs(): boolean
  close(): Promise<void>
}

type Taken<T> = T & Pick<OwnJob, 'epoch'>

const BEAT_EVERY_MS = 2500

/** Who has not been heard for so long is listened to for as long as CONFIRM_MS: the clock may have been set. */
const SILENT_MS = 10_000
const CONFIRM_MS = 6000

export interface LeaseOptions {
  server: Server
  name: string
  /** The clock that all workers share. Epoch milliseconds. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Whether the worker of this name is known to have died: it ran on this machine. */
  hasEnded: (name: string) => boolean
}

/** A worker as it was heard last. */
interface Heard {
  name: string
  /** Another number each time. */
  beat: number
  at: number
}

export async function createLeases({ server, name, now, sleep, hasEnded }: LeaseOptions): Promise<Leases> {
  const inHand = new Set<string>()
  /** Whether jobs may name this worker that it does not have: it could not write that it has released them. */
  let isInDoubt = false

  async function beat(): Promise<void> {
    await runRule(server, noteBeat(name, now()))
    if (isInDoubt) await giveBackStrays()
  }

  async function giveBackStrays(): Promise<void> {
    isInDoubt = false
    try {
      // By their epochs: one that is taken, or released, meanwhile has another one, or is in hand.
      for (const { epoch, ...job } of await server.rows<Named>(NAMED, [name]))
        if (!inHand.has(keyOf(job))) await runRule(server, releaseJob(job, { epoch }))
    } catch (error) {
      isInDoubt = true
      throw error
    }
  }

  async function buryIfDead(worker: Heard): Promise<void> {
    if (!hasEnded(worker.name)) {
      if (Math.abs(now() - worker.at) <= SILENT_MS) return
      await sleep(CONFIRM_MS)
    }
    await server.count('DELETE FROM sync_workers WHERE name = $1 AND beat = $2', [worker.name, worker.beat])
  }

  /** Whether a job may be taken. Nobody waits for a job whose row a living owner has locked. */
  async function isFree(job: JobNames): Promise<boolean> {
    const owner = await runRule(server, ownerOf(job))
    if (owner === null || owner.name === name) return owner === null
    await buryIfDead(owner)
    return !(await runRule(server, isOwned(job)))
  }

  // Before the first job is taken, so that a wrong configuration is found at the start.
  await beat()
  return {
    name,
    async take(job, isVerify, begin) {
      const key = keyOf(job)
      if (inHand.has(key)) return null
      inHand.add(key)
      let isOurs = false
      try {
        if (!(await isFree(job))) return null
        // This process may have stood still, and been buried.
        await beat()
        const taken = await server.transaction((sql) => runRule(sql, takeJob(job, name, isVerify, begin)))
        isOurs = taken !== null
        return taken
      } catch (error) {
        isInDoubt = true
        throw error
      } finally {
        if (!isOurs) inHand.delete(key)
      }
    },
    async release({ job, epoch }) {
      try {
        await runRule(server, releaseJob(job, { epoch }))
      } catch (error) {
        isInDoubt = true
        throw error
      } finally {
        inHand.delete(keyOf(job))
      }
    },
    beat,
    async bury() {
      const others = await runRule(server, all<Heard>(`${HEARD} WHERE name <> :name`, { name }))
      await Promise.all(others.map(buryIfDead))
    },
    hasJobs: () => inHand.size > 0,
    async close() {
      await server
        .attempt((sql) => sql.rows('DELETE FROM sync_workers WHERE name = $1', [name]))
        .catch(() => {})
    },
  }
}

/** Keeps a worker's jobs until the signal. What fails is tried again: a job itself reports a server that refuses. */
export async function keepJobs(
  { beat, hasJobs }: Leases,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(BEAT_EVERY_MS, signal).catch(() => {})
    if (!signal.aborted && hasJobs()) await beat().catch(() => {})
  }
}

function noteBeat(name: string, now: number): Rule<number> {
  return run(
    `
      INSERT INTO sync_workers (name, beat, at) VALUES (:name, nextval('sync_epochs'), :at)
      ON CONFLICT (name) DO UPDATE SET beat = excluded.beat, at = excluded.at
    `,
    { name, at: timeOf(now) },
  )
}

const HEARD = 'SELECT worker.name, worker.beat, worker.at FROM sync_workers AS worker'

/** The worker that has a job and is not buried. */
function ownerOf(job: JobNames): Rule<Heard | null> {
  return one(`${HEARD} JOIN sync_jobs ON owner = worker.name WHERE ${OF_JOB}`, job)
}

/** Whether a worker has a job that is not buried. */
export function* isOwned(job: JobNames): Rule<boolean> {
  return (yield* ownerOf(job)) !== null
}

/** A condition: the worker of this name lives, as far as is known. */
export function lives(name: string): string {
  return `EXISTS (SELECT 1 FROM sync_workers AS worker WHERE worker.name = ${name})`
}

function keyOf({ organization, collection }: JobNames): string {
  return `${organization}/${collection}`
}

type Named = JobNames & Pick<OwnJob, 'epoch'>

/** The jobs that name a worker. */
const NAMED = 'SELECT organization_id AS organization, collection, epoch FROM sync_jobs WHERE owner = $1'

/**
 * Notes that a worker has a job, unless a living one has it by now. `forget` may have deleted the row. A former owner can write nothing from
 * then on: after a failover that lost commits the sequence may give numbers again that living workers have, but with the random part none is
 * the same.
 */
function* takeJob<T extends object>(
  job: JobNames,
  name: string,
  isVerify: boolean,
  begin?: () => Rule<T>,
): Rule<Taken<T> | null> {
  const row = yield* one<{ epoch: number }>(
    `
      INSERT INTO sync_jobs AS job (organization_id, collection, configured, owner, verifying, epoch)
      VALUES (
        :organization, :collection, 1, :name, :verifying,
        nextval('sync_epochs') * 1000000 + floor(random() * 1000000)::bigint
      )
      ON CONFLICT (organization_id, collection) DO UPDATE
      SET owner = excluded.owner, verifying = excluded.verifying, epoch = excluded.epoch,
        retry_since = NULL, retry_until = NULL, retry_error = NULL
      WHERE job.owner IS NULL OR NOT ${lives('job.owner')}
      RETURNING epoch
    `,
    { ...job, name, verifying: isVerify ? 1 : 0 },
  )
  if (!row) return null
  return { ...(begin ? yield* begin() : {}), epoch: row.epoch } as Taken<T>
}

/** The names of the workers that were heard lately, for people. `now`: of the server. */
export async function livingWorkers(sql: Statements, now: number): Promise<ReadonlySet<string>> {
  const workers = await runRule(sql, all<Heard>(HEARD))
  return new Set(workers.filter(({ at }) => Math.abs(now - at) <= 2 * SILENT_MS).map(({ name }) => name))
}

// A `start` names itself in `sync_settings`.

/** Notes that this process is a `start`. */
export async function announceDaemon(
  server: Server,
  name: string,
  since: string,
  configuration: string,
): Promise<void> {
  await runRule(server, saveSetting(DAEMON + name, `${since} ${configuration}`))
}

export async function withdrawDaemon(server: Server, name: string): Promise<void> {
  // Even if the signal came while this process waited for the server, or for somebody's lock on it.
  await server.attempt((sql) => runRule(sql, removeSetting(DAEMON + name)))
}

/** Every `start` that runs, or died since another one began, the oldest first. One that was stopped has left no record. */
export async function readDaemons(sql: Statements, living: ReadonlySet<string>): Promise<DaemonRecord[]> {
  const daemons = await runRule(sql, announcedDaemons())
  return daemons.map(({ owner, value }) => {
    const [since = '', configuration = ''] = value.split(' ')
    const pid = Number(/-(\d+)-[0-9a-f]{12}$/.exec(owner)?.[1] ?? 0)
    return { pid, since, running: living.has(owner), configuration }
  })
}

/** Deletes the records of workers that died. Call it when a worker starts: until then `status` names those that died. */
export async function forgetDeadDaemons(server: Server, now: number): Promise<void> {
  const living = await livingWorkers(server, now)
  for (const { owner } of await runRule(server, announcedDaemons()))
    if (!living.has(owner)) await runRule(server, removeSetting(DAEMON + owner))
}

/** A list of an organization. */
export interface ListNames {
  organizationId: string
  collection: string
}

/** The lists that no other worker reads. */
export async function freeLists<L extends ListNames>(server: Server, lists: readonly L[]): Promise<L[]> {
  const owned = await runRule(server, ownedLists())
  return lists.filter(
    ({ organizationId, collection }) => !owned.has(keyOf({ organization: organizationId, collection })),
  )
}

function* ownedLists(): Rule<Set<string>> {
  const rows = yield* all<JobNames>(
    `SELECT organization_id AS organization, collection FROM sync_jobs WHERE owner IS NOT NULL AND ${lives('owner')}`,
  )
  return new Set(rows.map(keyOf))
}
