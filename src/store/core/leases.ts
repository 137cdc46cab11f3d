import { jobKey, partsOfProcessName } from '../../text.ts'
import { type JobNames, OF_JOB, type OwnJob } from './jobs.ts'
import { all, msOf, one, type Rule, run, type Runner, timeOf } from './sql.ts'

// Which process works on which job: the job's row names its owner, and `sync_workers` says when each process was heard last. A process with jobs says
// so again every few seconds. One that died is known at once on its own machine; elsewhere it is found silent. One that was stopped, or cut off, and is
// overtaken, writes nothing afterwards: each commit checks the epoch of the job.

export type Leases = ReturnType<typeof createLeases>

const BEAT_EVERY_MS = 2500

/** A `start` without a job says that it lives only for `status`. */
const IDLE_BEAT_EVERY_MS = 30_000

/** Who has not been heard for so long is listened to for as long as CONFIRM_MS, since the clock may have been set. */
const SILENT_MS = 10_000
const CONFIRM_MS = 6000

/** Who listens must not have waited longer for the database: whoever waited for the same could not be heard either. */
const LATE_MS = 1000

export interface LeaseOptions {
  runner: Pick<Runner, 'reading' | 'writing'>
  /** A name that no other process ever has, on any machine. */
  name: string
  /** The clock that all processes on the mirror share. Epoch milliseconds. */
  now: () => number
  /** Milliseconds of a clock that is never set. */
  elapsed: () => number
  sleep: (ms: number) => Promise<void>
  every: (ms: number, task: () => void) => () => void
  isAlive: IsAlive
  randomHex: () => string
}

/** Whether the process of this name lives; null where nobody here can know, as of one on another machine. */
export type IsAlive = (name: string) => boolean | null

/** A job that a process has, which was heard last at this time; null: it has left. */
interface Held {
  owner: string
  epoch: number
  heardAt: string | null
}

export function createLeases(options: LeaseOptions) {
  const { runner, name, now, elapsed, sleep, every, isAlive, randomHex } = options
  const { reading, writing } = runner
  const inHand = new Set<string>()
  /** Processes that were listened to in vain, by the time when they had been heard. */
  const silent = new Map<string, string>()
  const startedAt = timeOf(now())
  let configuration: string | null = null
  let saidAt = Number.NEGATIVE_INFINITY
  /** Whether jobs may name this process that it does not have. */
  let isInDoubt = false
  let beating: Promise<void> | null = null

  /**
   * Says that this process lives. Gives back the jobs that name it though it does not have them: it could not write that. Hundreds of jobs that are
   * taken together wait for the same word.
   */
  function beat(): Promise<void> {
    beating ??= say().finally(() => {
      beating = null
    })
    return beating
  }

  async function say(): Promise<void> {
    const wasInDoubt = isInDoubt
    isInDoubt = false
    try {
      await writing(function* () {
        yield* run(NOTE_BEAT, { name, at: timeOf(now()), startedAt, configuration })
        // By their epochs: one that is taken meanwhile has another one.
        for (const { epoch, ...job } of yield* all<JobNames & { epoch: number }>(NAMED, { name }))
          if (!inHand.has(jobKey(job.organization, job.collection))) yield* releaseJob(job, epoch)
      })
      saidAt = elapsed()
    } catch (error) {
      isInDoubt ||= wasInDoubt
      throw error
    }
  }

  const stopBeating = every(BEAT_EVERY_MS, () => {
    const isIdle = inHand.size === 0 && !isInDoubt
    if (isIdle && (configuration === null || elapsed() - saidAt < IDLE_BEAT_EVERY_MS)) return
    // What fails is tried again: a job itself reports a database that refuses.
    void beat().catch(() => {})
  })

  /**
   * Who has a job that can be taken: nobody else, or who is taken for dead. One that is silent though nobody knows that it died is listened to before.
   * Null: it cannot be taken.
   */
  async function takeable(job: JobNames): Promise<{ held: Held | null } | null> {
    const held = await reading(one<Held>(HELD, job))
    if (held === null || held.owner === name) return { held }
    const { owner, heardAt } = held
    if (heardAt === null || isAlive(owner) === false || silent.get(owner) === heardAt) return { held }
    if (Math.abs(now() - msOf(heardAt)) <= SILENT_MS) return null
    // A write before and after: nobody can be heard while the database takes none, for a lock or a full disk.
    await beat()
    const begun = elapsed()
    await sleep(CONFIRM_MS)
    await beat()
    const again = await reading(one<Held>(HELD, job))
    const isSame = again?.owner === owner && again.heardAt === heardAt
    const isSilent = isSame && elapsed() - begun <= CONFIRM_MS + LATE_MS
    if (isSilent) silent.set(owner, heardAt)
    // It may have been heard once more, and died.
    return again === null || isSilent || isAlive(again.owner) === false ? { held: again } : null
  }

  return {
    /** Takes a job, and runs `begin` in the same transaction. Returns null if a living process has the job, be it this one. */
    async take<T extends object = object>(
      job: JobNames,
      isVerify: boolean,
      begin?: () => Rule<T>,
    ): Promise<(T & { epoch: number }) | null> {
      const key = jobKey(job.organization, job.collection)
      if (inHand.has(key)) return null
      inHand.add(key)
      let isOurs = false
      try {
        const found = await takeable(job)
        if (!found) return null
        const { held } = found
        // This process may have stood still, and be taken for dead.
        if (elapsed() - saidAt > BEAT_EVERY_MS) await beat()
        const epoch = Number.parseInt(randomHex().slice(0, 12), 16)
        const taken = await writing(function* () {
          // Who was silent may have been heard while the lock was waited for.
          const again = yield* one<Held>(HELD, job)
          if (again?.owner === held?.owner && again?.heardAt !== held?.heardAt) return null
          const values = { ...job, name, epoch, verifying: isVerify ? 1 : 0, former: held?.epoch ?? null }
          if ((yield* run(TAKE, values)) === 0) return null
          if (held) yield* run(FORGET_OWNER, { owner: held.owner })
          return { ...(begin ? yield* begin() : {}), epoch } as T & { epoch: number }
        })
        isOurs = taken !== null
        return taken
      } catch (error) {
        isInDoubt = true
        throw error
      } finally {
        if (!isOurs) inHand.delete(key)
      }
    },
    /** Whether no living process has a job. */
    isFree: async (job: JobNames) => (await takeable(job)) !== null,
    async release({ job, epoch }: Pick<OwnJob, 'job' | 'epoch'>): Promise<void> {
      try {
        await writing(() => releaseJob(job, epoch))
      } catch (error) {
        isInDoubt = true
        throw error
      } finally {
        inHand.delete(jobKey(job.organization, job.collection))
      }
    },
    beat,
    /** Notes that this process is a `start`, and forgets those that died. */
    async announce(ownConfiguration: string): Promise<void> {
      configuration = ownConfiguration
      await beat()
      await writing(function* () {
        for (const daemon of yield* daemons(isAlive, now()))
          if (!daemon.running) yield* run(FORGET, { name: daemon.name })
      })
    },
    /** From now on this process is no `start`: it ends as it was told to. */
    withdraw(): void {
      configuration = null
    },
    async close(): Promise<void> {
      stopBeating()
      // The record of a `start` that ends otherwise than it was told to stays, for `status`.
      if (configuration === null && saidAt > Number.NEGATIVE_INFINITY)
        await writing(() => run(FORGET, { name })).catch(() => {})
    },
  }
}

const NOTE_BEAT = `
  INSERT INTO sync_workers (name, heard_at, started_at, configuration) VALUES (:name, :at, :startedAt, :configuration)
  ON CONFLICT (name) DO UPDATE SET heard_at = excluded.heard_at, configuration = excluded.configuration
`
const FORGET = 'DELETE FROM sync_workers WHERE name = :name'

/** A process that died and has lost its last job. Only of a `start` people want to know that it died. */
const FORGET_OWNER = `
  DELETE FROM sync_workers
  WHERE name = :owner AND configuration IS NULL AND NOT EXISTS (SELECT 1 FROM sync_jobs WHERE sync_jobs.owner = sync_workers.name)
`

/** The owner of a job, and when it was last heard; no row: nobody has the job. */
const HELD = `
  SELECT owner, epoch, heard_at AS "heardAt"
  FROM sync_jobs
  LEFT JOIN sync_workers AS worker ON worker.name = owner
  WHERE owner IS NOT NULL AND ${OF_JOB}
`

/** The jobs that name a process. */
const NAMED =
  'SELECT organization_id AS organization, collection, epoch FROM sync_jobs WHERE owner = :name::text'

/**
 * Notes that a process has a job, unless another one has taken it since it was looked at. `forget` may have deleted the row. A former owner can write
 * nothing from then on, since its epoch is another; a counter could give one twice, of a job that was forgotten, and after a failover that lost commits.
 */
const TAKE = `
  INSERT INTO sync_jobs AS job (organization_id, collection, configured, owner, verifying, epoch)
  VALUES (:organization, :collection, 1, :name, :verifying, :epoch)
  ON CONFLICT (organization_id, collection) DO UPDATE
  SET owner = excluded.owner, verifying = excluded.verifying, epoch = excluded.epoch,
    retry_since = NULL, retry_until = NULL, retry_error = NULL
  WHERE job.owner IS NULL OR job.owner = excluded.owner OR job.epoch = :former::bigint
`

/** Gives a job back, unless another process has taken it since. */
function releaseJob(job: JobNames, epoch: number): Rule<number> {
  return run(`UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE ${OF_JOB} AND epoch = :epoch`, {
    ...job,
    epoch,
  })
}

/** For a copy of a mirror: no process works on it, and none died on it. */
export const FORGET_PROCESSES = [
  'DELETE FROM sync_workers',
  'UPDATE sync_jobs SET owner = NULL, verifying = 0, retry_since = NULL, retry_until = NULL, retry_error = NULL',
]

// What others see of the processes.

/** A `start` that runs, or died. */
export interface DaemonRecord {
  pid: number
  /** When it began. */
  since: string
  /** Whether it lives, as far as is known here. */
  running: boolean
  /** The fingerprint of its configuration. */
  configuration: string
}

/** Every `start` that runs, or died since another one began, the oldest first. One that was told to stop has left no record. `now`: of the mirror. */
export function* daemons(isAlive: IsAlive, now: number): Rule<(DaemonRecord & { name: string })[]> {
  const rows = yield* all<Worker & { startedAt: string; configuration: string }>(`
    SELECT name, heard_at AS "heardAt", started_at AS "startedAt", configuration
    FROM sync_workers
    WHERE configuration IS NOT NULL
    ORDER BY started_at, name
  `)
  return rows.map(({ name, heardAt, startedAt, configuration }) => ({
    name,
    pid: Number(partsOfProcessName(name)?.pid ?? 0),
    since: startedAt,
    running: isAlive(name) ?? wasHeard(heardAt, now, 2 * IDLE_BEAT_EVERY_MS),
    configuration,
  }))
}

/** The names of the processes that have jobs and live, as far as is known here. `now`: of the mirror. */
export function* livingOwners(isAlive: IsAlive, now: number): Rule<ReadonlySet<string>> {
  const owners = yield* all<Worker>(
    'SELECT DISTINCT name, heard_at AS "heardAt" FROM sync_jobs JOIN sync_workers ON name = owner',
  )
  const living = owners.filter(({ name, heardAt }) => isAlive(name) ?? wasHeard(heardAt, now, 2 * SILENT_MS))
  return new Set(living.map(({ name }) => name))
}

interface Worker {
  name: string
  heardAt: string
}

function wasHeard(at: string, now: number, sinceMs: number): boolean {
  return Math.abs(now - msOf(at)) <= sinceMs
}
