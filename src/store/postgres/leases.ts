import { createHash } from 'node:crypto'
import { behindPooler } from './server/errors.ts'
import type { OwnConnection } from './server/pool.ts'
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
  /** Takes our locks back, unless we have them. Call it now and then: after a minute of refusals nothing else tries it again. */
  renew(): Promise<void>
  /** The name of this worker. */
  name: string
  close(): Promise<void>
}

export async function createLeases(server: Server, name: string): Promise<Leases> {
  const held = new Set<bigint>()
  const asked = new Set<bigint>()
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
    if (held.size > 0 && !isClosed) void takeBack()
  }

  /** Takes our locks back before another worker looks for jobs that nobody has. */
  async function takeBack(): Promise<void> {
    // A failed attempt comes here again: each would begin a wait of its own, and none would pause.
    if (isReturning) return
    isReturning = true
    // Whoever needs the connection next is told why there is none.
    await server.patiently(connected).catch(() => {})
    isReturning = false
  }

  async function open(onLost: () => void): Promise<OwnConnection> {
    const opened = await server.connect(onLost)
    try {
      await assertNoPooler(opened)
      // A lock that another worker got meanwhile stays with it: its epoch keeps us from writing.
      for (const key of held) await tryLock(opened, key)
      if (isClosed) await opened.close()
      return opened
    } catch (error) {
      await opened.close().catch(() => {})
      throw error
    }
  }

  // Before the first job is taken, so that a wrong configuration is found at the start.
  await server.patiently(connected)

  /** Waits for a server that is away. What failed may still hold locks, so it is closed. */
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
      if (held.has(key) || asked.has(key)) return false
      asked.add(key)
      try {
        const isOurs = await onConnection((own) => tryLock(own, key))
        if (isOurs) held.add(key)
        return isOurs
      } finally {
        asked.delete(key)
      }
    },
    async unlock(organizationId, collection) {
      const key = lockKey(server.address.schema, organizationId, collection)
      if (!held.delete(key)) return
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
      if (!connection && held.size > 0 && !isClosed) await takeBack()
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
