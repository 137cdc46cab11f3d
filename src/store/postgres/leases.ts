import { type JobNames, OF_JOB, type OwnJob } from '../core/jobs.ts'
import { announcedDaemons, DAEMON, type DaemonRecord, releaseJob } from '../core/leases.ts'
import { removeSetting, saveSetting } from '../core/settings.ts'
import { one, type Rule, timeOf } from '../core/sql.ts'
import { runRule, type Statements } from './driver.ts'
import type { OwnConnection, Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'

/**
 * Which worker works on which job: the job's row names its owner, as long as that lives. Each worker holds an advisory lock of its name, on
 * a connection that does nothing else: the server drops it with the connection, so a killed worker loses its jobs at once, and one whose
 * machine is gone within 10 seconds. That a worker which was cut off writes nothing once another one has its job is up to the job's epoch,
 * which each commit checks.
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
  /**
   * Call it regularly. Takes the worker's lock again where `server.patiently` has given up after a minute of refusals; and gives back the jobs
   * that name this worker though it does not have them: it could not write that it has released them, or a failover has lost it.
   */
  renew(): Promise<void>
  close(): Promise<void>
}

type Taken<T> = T & Pick<OwnJob, 'epoch'>

export async function createLeases(server: Server, name: string): Promise<Leases> {
  const inHand = new Set<string>()
  /** The connection with the lock; null while it is lost. */
  let current: OwnConnection | null = null
  let holding: Promise<void> | null = null
  let isClosed = false
  /** Whether jobs may name this worker that it does not have. */
  let isInDoubt = false

  /**
   * Waits while the server is away. Never two connections at once: each would keep the lock. The server may have ended the connection without
   * this process hearing of it, as where a firewall forgets connections: jobs that are taken then would be taken from it at once.
   */
  async function hold(): Promise<void> {
    const found = current
    if (found && !(await isHeld()) && current === found) {
      current = null
      isInDoubt = true
      void found.close().catch(() => {})
    }
    if (current) return
    holding ??= server.patiently(open).finally(() => {
      holding = null
    })
    await holding
  }

  async function isHeld(): Promise<boolean> {
    const [row] = await server.rows<{ lives: boolean }>(`SELECT ${lives('$1')} AS lives`, [name])
    return row?.lives === true
  }

  async function open(): Promise<void> {
    let opened: OwnConnection | null = null
    const own = await server.connect(() => {
      if (current === null || current !== opened) return
      current = null
      isInDoubt = true
      // Before another worker looks for jobs without an owner. The next call that needs the lock reports the error.
      if (!isClosed) void hold().catch(() => {})
    })
    opened = own
    try {
      // Waits for the server to notice that the connection before has ended.
      await own.rows("SELECT set_config('lock_timeout', '0', false)", [])
      await own.rows(`SELECT pg_advisory_lock(${lockOf('$1')})`, [name])
    } catch (error) {
      await own.close().catch(() => {})
      throw error
    }
    if (isClosed) await own.close()
    else current = own
  }

  // Before the first job is taken, so that a wrong configuration is found at the start.
  await hold()
  return {
    name,
    async take(job, isVerify, begin) {
      const key = keyOf(job)
      if (inHand.has(key)) return null
      inHand.add(key)
      const taking = async () => {
        // Nobody waits for a job whose row a living owner has locked.
        if (await runRule(server, isOwned(job))) return null
        await hold()
        return server.transaction((sql) => runRule(sql, takeJob(job, name, isVerify, begin)))
      }
      let isOurs = false
      try {
        const taken = await taking()
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
    async renew() {
      if (isClosed) return
      await hold()
      if (!isInDoubt) return
      isInDoubt = false
      try {
        // By their epochs: one that is taken, or released, meanwhile has another one, or is in hand.
        for (const { epoch, ...job } of await server.rows<Named>(NAMED, [name]))
          if (!inHand.has(keyOf(job))) await runRule(server, releaseJob(job, { epoch }))
      } catch (error) {
        isInDoubt = true
        throw error
      }
    },
    async close() {
      isClosed = true
      await holding?.catch(() => {})
      await current?.close().catch(() => {})
      current = null
    },
  }
}

/** The number of a name among the advisory locks of the database: an expression. */
function lockOf(name: string): string {
  return `hashtextextended(current_setting('search_path') || ' ' || ${name}::text, 0)`
}

/** A condition: the worker of this name lives. */
export function lives(name: string): string {
  return `
    ${lockOf(name)} = ANY (ARRAY(
      SELECT (classid::bigint << 32) | objid::bigint
      FROM pg_locks
      WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ))
  `
}

function keyOf({ organization, collection }: JobNames): string {
  return `${organization}/${collection}`
}

type Named = JobNames & Pick<OwnJob, 'epoch'>

/** The jobs that name a worker. */
const NAMED = 'SELECT organization_id AS organization, collection, epoch FROM sync_jobs WHERE owner = $1'

/** Whether a living worker has a job. */
export function* isOwned(job: JobNames): Rule<boolean> {
  return (yield* one(`SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND ${lives('owner')}`, job)) !== null
}

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

/** The names of the workers that live, of those that have jobs or are a `start`. */
export async function livingWorkers(sql: Pick<Sql, 'rows'>): Promise<ReadonlySet<string>> {
  const rows = await sql.rows<{ name: string }>(`
    SELECT name
    FROM (
      SELECT owner FROM sync_jobs WHERE owner IS NOT NULL
      UNION
      SELECT substr(name, ${DAEMON.length + 1}) FROM sync_settings WHERE starts_with(name, '${DAEMON}')
    ) AS known (name)
    WHERE ${lives('name')}
  `)
  return new Set(rows.map(({ name }) => name))
}

// A `start` names itself in `sync_settings`.

/** The number of a table, which no copy of the schema has: a `start` of the original did not die here. */
async function tableNumber(sql: Pick<Sql, 'rows'>): Promise<string> {
  const [row] = await sql.rows<{ oid: string }>("SELECT 'sync_settings'::regclass::oid::text AS oid")
  return row?.oid ?? ''
}

/**
 * Notes that this process is a `start`. Call it regularly: a worker that started while this one was cut off has taken it for dead, and deleted
 * its record.
 */
export async function announceDaemon(
  server: Server,
  name: string,
  since: string,
  configuration: string,
): Promise<void> {
  const value = `${since} ${await tableNumber(server)} ${configuration}`
  await runRule(server, saveSetting(DAEMON + name, value))
}

export async function withdrawDaemon(server: Server, name: string): Promise<void> {
  // Even if the signal came while this process waited for the server, or for somebody's lock on it.
  await server.attempt((sql) => runRule(sql, removeSetting(DAEMON + name)))
}

/**
 * Every `start` that runs, or died within the last day. One that was stopped has left no record, unless the schema is a copy from before
 * then. The oldest first.
 */
export async function readDaemons(sql: Statements, living: ReadonlySet<string>): Promise<DaemonRecord[]> {
  const number = await tableNumber(sql)
  const daemons = await runRule(sql, announcedDaemons())
  return daemons.flatMap(({ owner, value }) => {
    const [since = '', of = number, configuration = ''] = value.split(' ')
    if (of !== number) return []
    const pid = Number(/-(\d+)-[0-9a-f]{12}$/.exec(owner)?.[1] ?? 0)
    return [{ pid, since, running: living.has(owner), configuration }]
  })
}

/** Deletes the records of workers that died. Call it when a worker starts: until then `status` names those that died. */
export async function forgetDeadDaemons(server: Server): Promise<void> {
  const living = await livingWorkers(server)
  for (const { owner } of await runRule(server, announcedDaemons()))
    if (!living.has(owner)) await runRule(server, removeSetting(DAEMON + owner))
}

/** A list of an organization. */
export interface ListNames {
  organizationId: string
  collection: string
}

/** The most lists that one worker takes at once: the others take what is left. */
const MOST_TAKEN = 8

/** The most lists that are looked at at once: other workers may have the first ones. */
const MOST_ASKED = 500

/**
 * For how long no other worker takes a list that one has taken. By then the worker reads it, which its lock shows, or has died. Once it has read
 * the list, that is not due any more. Milliseconds.
 */
const TURN_MS = 10_000

/** Takes the first of these lists that no worker reads, or is about to read. A list whose row is locked is being read. */
export async function takeFreeLists<L extends ListNames>(
  server: Server,
  lists: readonly L[],
  now: number,
): Promise<L[]> {
  const asked = lists.slice(0, MOST_ASKED)
  if (asked.length === 0) return []
  const rows = await server.rows<{ place: number }>(TAKE, [
    asked.map(({ organizationId }) => organizationId),
    asked.map(({ collection }) => collection),
    timeOf(now),
    TURN_MS,
    MOST_TAKEN,
  ])
  const taken = new Set(rows.map(({ place }) => place))
  return asked.filter((_list, index) => taken.has(index + 1))
}

// A clock that was set back delays no refresh.
const TAKE = `
  WITH asked AS (
      SELECT *
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS one (organization_id, collection, place)
    ),
    free AS MATERIALIZED (
      SELECT organization_id, collection, place
      FROM asked
      JOIN sync_jobs AS job USING (organization_id, collection)
      WHERE (abs(extract(epoch FROM $3::timestamptz - job.refresh_turn)) * 1000 < $4::double precision) IS NOT TRUE
        AND (job.owner IS NULL OR NOT ${lives('job.owner')})
      ORDER BY place
      LIMIT $5
      FOR NO KEY UPDATE OF job SKIP LOCKED
    )
  UPDATE sync_jobs AS job
  SET refresh_turn = $3
  FROM free
  WHERE job.organization_id = free.organization_id AND job.collection = free.collection
  RETURNING free.place::int AS place
`
