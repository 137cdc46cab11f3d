import { createHash } from 'node:crypto'
import { JobError, MirrorError } from '../../errors.ts'
import type { OwnConnection } from './server/pool.ts'
import type { Server } from './server/server.ts'

/**
 * Which worker works on which job. A worker holds an advisory lock for each of its jobs, all on one connection that does
 * nothing else: the server drops them with the connection, so a killed worker loses its jobs at once, and one whose machine
 * is gone within 20 seconds. The lock only says who may take a job; that an overtaken worker writes nothing is up to the
 * job's epoch, which each commit checks.
 */
export interface Leases {
  /** Takes the lock of a job. Returns false if another living worker has it, or this one already. */
  lock(organizationId: string, collection: string): Promise<boolean>
  unlock(organizationId: string, collection: string): Promise<void>
  /** The name of this worker. */
  name: string
  close(): Promise<void>
}

export async function createLeases(server: Server, name: string): Promise<Leases> {
  const held = new Set<bigint>()
  let connection: Promise<OwnConnection> | null = null

  /** The connection with all our locks on it; a new one if the last one was lost. */
  function connected(): Promise<OwnConnection> {
    connection ??= open().catch((error: unknown) => {
      connection = null
      throw error
    })
    return connection
  }

  async function open(): Promise<OwnConnection> {
    const opened = await server.connect(() => {
      connection = null
    })
    await assertNoPooler(opened)
    // A lock that another worker got meanwhile stays with it: its epoch keeps us from writing.
    for (const key of held) await tryLock(opened, key)
    return opened
  }

  // Before the first job is taken, so that a wrong configuration is found at the start.
  await connected()

  /** Takes our locks back after a lost connection, so that others do not take the jobs. */
  async function onConnection<T>(task: (connection: OwnConnection) => Promise<T>): Promise<T> {
    try {
      return await task(await connected())
    } catch {
      connection = null
      return task(await connected())
    }
  }

  return {
    name,
    async lock(organizationId, collection) {
      const key = lockKey(server.address.schema, organizationId, collection)
      // Noted first: the server would give the lock to this connection twice.
      if (held.has(key)) return false
      held.add(key)
      const isOurs = await onConnection((own) => tryLock(own, key)).catch((error: unknown) => {
        held.delete(key)
        throw error
      })
      if (!isOurs) held.delete(key)
      return isOurs
    },
    async unlock(organizationId, collection) {
      const key = lockKey(server.address.schema, organizationId, collection)
      if (!held.delete(key)) return
      const own = await connected()
      await own.rows('SELECT pg_advisory_unlock($1)', [String(key)])
    },
    close: async () => {
      const own = await connection
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
  throw new MirrorError(
    'a connection pooler stands before the PostgreSQL server, and locks of a session do not work through it: name the server ' +
      'itself as "database"',
  )
}

/** A job's number among the advisory locks of the database. */
export function lockKey(schema: string, organizationId: string, collection: string): bigint {
  const hash = createHash('sha256')
    .update(JSON.stringify([schema, organizationId, collection]))
    .digest()
  return hash.readBigInt64BE(0)
}

/** This worker was cut off, and another one has the job. */
export function overtaken(job: string): JobError {
  return new JobError(
    'BUSY',
    `${job}: another worker has taken the job over while this one was cut off; this one has written nothing since`,
  )
}
