import { createHash } from 'node:crypto'
import { type JobNames, OF_JOB } from '../core/jobs.ts'
import { announcedDaemons, DAEMON, type DaemonRecord } from '../core/leases.ts'
import { removeSetting, saveSetting } from '../core/settings.ts'
import { one, type Rule, timeOf } from '../core/sql.ts'
import { runRule, type Statements } from './driver.ts'
import { behindPooler } from './server/errors.ts'
import type { OwnConnection, Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'

/**
 * Which worker works on which job. A worker holds an advisory lock for each of its jobs, all on one connection that does
 * nothing else: the server drops them with the connection, so a killed worker loses its jobs at once, and one whose machine
 * is gone within 10 seconds. The lock only says who may take a job; that an overtaken worker writes nothing is up to the
 * job's epoch, which each commit checks.
 */
export interface Leases {
  /** Takes the lock of a job. Returns false if another living worker has it, or this one already. */
  lock(organizationId: string, collection: string): Promise<boolean>
  unlock(organizationId: string, collection: string): Promise<void>
  /**
   * Takes our locks back if the connection that held them is lost. Call it regularly: `server.patiently` gives up after a minute of refusals,
   * and then nothing else takes them back.
   */
  renew(): Promise<void>
  /** The name of this worker. */
  name: string
  close(): Promise<void>
}

export async function createLeases(server: Server, name: string): Promise<Leases> {
  const ours = new Set<bigint>()
  const asked = new Set<bigint>()
  /** Those of ours that a new connection did not get. */
  const missing = new Set<bigint>()
  let connection: Promise<OwnConnection> | null = null
  let isClosed = false
  let isReturning = false

  /** The connection with all our locks on it; a new one if the last one was lost. Never two: each would keep its locks. */
  function connected(): Promise<OwnConnection> {
    if (connection) return connection
    const opening = open(() => forget(opening))
    connection = opening
    opening.catch(() => forget(opening))
    return opening
  }

  function forget(lost: Promise<OwnConnection>): void {
    if (connection !== lost) return
    connection = null
    if (ours.size > 0 && !isClosed) void takeBack()
  }

  /** Takes our locks back before another worker looks for jobs without an owner. */
  async function takeBack(): Promise<void> {
    // After a failed attempt `forget` calls this again: each call would begin a wait of its own, and none would pause.
    if (isReturning) return
    isReturning = true
    // The next call that needs the connection reports the error.
    await server.patiently(connected).catch(() => {})
    isReturning = false
  }

  async function open(onLost: () => void): Promise<OwnConnection> {
    const opened = await server.connect(onLost)
    try {
      await assertNoPooler(opened)
      missing.clear()
      for (const key of ours) missing.add(key)
      await takeMissing(opened)
      // The server tells a client of the end of its connection before it drops the locks of that.
      if (missing.size > 0) {
        await opened.rows('SELECT pg_sleep(1)', [])
        await takeMissing(opened)
      }
      if (isClosed) await opened.close()
      return opened
    } catch (error) {
      await opened.close().catch(() => {})
      throw error
    }
  }

  /** A lock that another worker got meanwhile stays with it: its epoch keeps us from writing. */
  async function takeMissing(own: OwnConnection): Promise<void> {
    for (const key of missing) if (await tryLock(own, key)) missing.delete(key)
  }

  // Before the first job is taken, so that a wrong configuration is found at the start.
  await server.patiently(connected)

  /** Runs a task on the connection; waits while the server is away. A connection on which it failed may still hold locks, so it is closed. */
  function onConnection<T>(task: (connection: OwnConnection) => Promise<T>): Promise<T> {
    return server.patiently(async () => {
      const used = connected()
      const own = await used
      try {
        return await task(own)
      } catch (error) {
        forget(used)
        await own.close().catch(() => {})
        throw error
      }
    })
  }

  return {
    name,
    async lock(organizationId, collection) {
      const key = lockKey(server.address.schema, organizationId, collection)
      // The server would give the lock to this connection twice, and keep it when it is given back once.
      if (ours.has(key) || asked.has(key)) return false
      asked.add(key)
      try {
        const isOurs = await onConnection((own) => tryLock(own, key))
        if (isOurs) ours.add(key)
        return isOurs
      } finally {
        asked.delete(key)
      }
    },
    async unlock(organizationId, collection) {
      const key = lockKey(server.address.schema, organizationId, collection)
      if (!ours.delete(key)) return
      missing.delete(key)
      // The server drops the locks of a connection that is lost.
      const used = connection
      const own = await used?.catch(() => null)
      if (!used || !own) return
      await own.rows('SELECT pg_advisory_unlock($1)', [String(key)]).catch(async () => {
        // The other locks go with it, and are taken back.
        forget(used)
        await own.close().catch(() => {})
      })
    },
    renew: async () => {
      if (ours.size === 0 || isClosed) return
      if (!connection) await takeBack()
      else if (missing.size > 0) await onConnection(takeMissing)
    },
    close: async () => {
      isClosed = true
      const own = await connection?.catch(() => null)
      await own?.close().catch(() => {})
    },
  }
}

async function tryLock(connection: OwnConnection, key: bigint): Promise<boolean> {
  const [row] = await connection.rows<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [
    String(key),
  ])
  return row?.locked === true
}

/** Behind a pooler in transaction mode a lock would belong to whoever gets the connection next. */
async function assertNoPooler(connection: OwnConnection): Promise<void> {
  const [row] = await connection.rows<{ pid: number }>('SELECT pg_backend_pid() AS pid', [])
  if (row?.pid === connection.backend) return
  throw behindPooler()
}

/** A job's number among the advisory locks of the database. */
export function lockKey(schema: string, organizationId: string, collection: string): bigint {
  const hash = createHash('sha256')
    .update(JSON.stringify([schema, organizationId, collection]))
    .digest()
  return hash.readBigInt64BE(0)
}

/** Gives a job another number, and returns it; null if there is no such job. A former owner can write nothing from then on. */
export function* newEpoch(job: JobNames): Rule<number | null> {
  // After a failover that lost commits the sequence may give numbers again that living workers have: with the random part, none is the
  // same.
  const row = yield* one<{ epoch: number }>(
    `
      UPDATE sync_jobs
      SET epoch = nextval('sync_epochs') * 1000000 + floor(random() * 1000000)::bigint
      WHERE ${OF_JOB}
      RETURNING epoch
    `,
    job,
  )
  return row?.epoch ?? null
}

// A `start` names itself in `sync_settings`, and holds a lock of that name as long as it lives.

/** The number of a table, which no copy of the schema has: a `start` of the original did not die here. */
async function tableNumber(sql: Pick<Sql, 'rows'>): Promise<string> {
  const [row] = await sql.rows<{ oid: string }>("SELECT 'sync_settings'::regclass::oid::text AS oid")
  return row?.oid ?? ''
}

export interface Announcement {
  /** Call it regularly: a worker that started while this one was cut off has taken it for dead, and deleted its record. */
  renew(): Promise<void>
  withdraw(): Promise<void>
}

/** Notes that this process is a `start`. */
export async function announceDaemon(server: Server, leases: Leases, since: string): Promise<Announcement> {
  const name = DAEMON + leases.name
  const renew = async () => {
    await runRule(server, saveSetting(name, `${since} ${await tableNumber(server)}`))
  }
  await leases.lock(name, '')
  await renew()
  return {
    async renew() {
      await leases.renew()
      await renew()
    },
    async withdraw() {
      // Even if the signal came while this process waited for the server, or for somebody's lock on it.
      await server.attempt((sql) => runRule(sql, removeSetting(name)))
      await leases.unlock(name, '')
    },
  }
}

/**
 * Every `start` that runs, or died within the last day. One that was stopped has left no record, unless the schema is a copy from before
 * then. The oldest first.
 */
export async function readDaemons(sql: Statements, isLocked: IsLocked): Promise<DaemonRecord[]> {
  const number = await tableNumber(sql)
  const daemons = await runRule(sql, announcedDaemons())
  return daemons.flatMap(({ owner, value }) => {
    const [since = '', of = number] = value.split(' ')
    if (of !== number) return []
    const pid = Number(/-(\d+)-[0-9a-f]{12}$/.exec(owner)?.[1] ?? 0)
    return [{ pid, since, running: isLocked(DAEMON + owner, '') }]
  })
}

/** Deletes the records of workers that died. Call it when a worker starts: until then `status` names those that died. */
export async function forgetDeadDaemons(server: Server): Promise<void> {
  const isLocked = await readLocks(server, server.address.schema)
  for (const { owner } of await runRule(server, announcedDaemons()))
    if (!isLocked(DAEMON + owner, '')) await runRule(server, removeSetting(DAEMON + owner))
}

/** Whether a living process had the lock of a job when this was read. */
export type IsLocked = (organizationId: string, collection: string) => boolean

/** The advisory locks of this database: of all jobs that any process works on. */
const LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
`

export async function readLocks(sql: Pick<Sql, 'rows'>, schema: string): Promise<IsLocked> {
  const rows = await sql.rows<{ key: string }>(`SELECT key::text FROM (${LOCKS}) AS held (key)`)
  const keys = new Set(rows.map(({ key }) => key))
  return (...job) => keys.has(String(lockKey(schema, ...job)))
}

/** Whether a living process works on a job. */
export async function isOwned(server: Server, organizationId: string, collection: string): Promise<boolean> {
  const owned = await server.rows(
    'SELECT 1 FROM sync_jobs WHERE organization_id = $1 AND collection = $2 AND owner IS NOT NULL',
    [organizationId, collection],
  )
  // Asked before each run: the locks are those of all jobs that all workers have in hand.
  return owned.length > 0 && (await readLocks(server, server.address.schema))(organizationId, collection)
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
    asked.map(({ organizationId, collection }) =>
      String(lockKey(server.address.schema, organizationId, collection)),
    ),
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
      FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS one (organization_id, collection, lock, place)
    ),
    free AS MATERIALIZED (
      SELECT organization_id, collection, place
      FROM asked
      JOIN sync_jobs AS job USING (organization_id, collection)
      WHERE (abs(extract(epoch FROM $4::timestamptz - job.refresh_turn)) * 1000 < $5::double precision) IS NOT TRUE
        AND (job.owner IS NULL OR asked.lock <> ALL (ARRAY(${LOCKS})))
      ORDER BY place
      LIMIT $6
      FOR NO KEY UPDATE OF job SKIP LOCKED
    )
  UPDATE sync_jobs AS job
  SET refresh_turn = $4
  FROM free
  WHERE job.organization_id = free.organization_id AND job.collection = free.collection
  RETURNING free.place::int AS place
`
