import type { DaemonRecord } from '../sqlite/daemons.ts'
import { type Leases, lockKey } from './leases.ts'
import type { Server } from './server/server.ts'
import type { Sql } from './sql.ts'

// A `start` names itself in `sync_settings`, and holds a lock of that name as long as it lives.

const PREFIX = 'daemon '

/** The number of the table, which no copy of it has: who ran on the original did not die here. */
const TABLE = "'sync_settings'::regclass::oid::text"

export interface Announcement {
  /** Call it now and then: another worker that started while this one was cut off has taken it for dead. */
  renew(): Promise<void>
  withdraw(): Promise<void>
}

/** Notes that this process is a `start`. */
export async function announceDaemon(server: Server, leases: Leases, since: string): Promise<Announcement> {
  const name = PREFIX + leases.name
  const renew = async () => {
    const note = `
      INSERT INTO sync_settings AS known (name, value) VALUES ($1, $2::text || ' ' || ${TABLE})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE known.value <> excluded.value
    `
    await server.rows(note, [name, since])
  }
  await leases.lock(name, '')
  await renew()
  return {
    async renew() {
      await leases.renew()
      await renew()
    },
    async withdraw() {
      // Also where the signal came while the server, or somebody's lock on it, was waited for.
      await server.attempt((sql) => sql.rows('DELETE FROM sync_settings WHERE name = $1', [name]))
      await leases.unlock(name, '')
    },
  }
}

/**
 * Every `start` that runs, or died within the last day. One that was stopped has left no record, unless the schema is a copy from before
 * then. The oldest first.
 */
export async function readDaemons(
  sql: Pick<Sql, 'rows'>,
  schema: string,
  locks: ReadonlySet<string>,
): Promise<DaemonRecord[]> {
  const rows = await sql.rows<{ name: string; value: string }>(
    `
      SELECT name, split_part(value, ' ', 1) AS value
      FROM sync_settings
      WHERE starts_with(name, '${PREFIX}') AND split_part(value, ' ', 2) IN (${TABLE}, '')
      ORDER BY value, name
      LIMIT 1000
    `,
  )
  return rows.map(({ name, value }) => ({
    pid: Number(/-(\d+)-[0-9a-f]{12}$/.exec(name)?.[1] ?? 0),
    since: value,
    running: locks.has(String(lockKey(schema, name, ''))),
  }))
}

/** Forgets those of other workers that died, so that each death is told once: until the next one starts. */
export async function forgetDeadDaemons(server: Server): Promise<void> {
  const { schema } = server.address
  const locks = await advisoryLocks(server)
  const names = await server.rows<{ name: string }>(
    `SELECT name FROM sync_settings WHERE starts_with(name, '${PREFIX}')`,
  )
  const dead = names.map(({ name }) => name).filter((name) => !locks.has(String(lockKey(schema, name, ''))))
  if (dead.length > 0) await server.rows('DELETE FROM sync_settings WHERE name = ANY ($1)', [dead])
}

/** The numbers of all advisory locks of this database. */
export async function advisoryLocks(sql: Pick<Sql, 'rows'>): Promise<Set<string>> {
  const rows = await sql.rows<{ key: string }>(`
    SELECT ((classid::bigint << 32) | objid::bigint)::text AS key
    FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  `)
  return new Set(rows.map(({ key }) => key))
}

/** Whether a living process works on a job. */
export async function isOwned(server: Server, organizationId: string, collection: string): Promise<boolean> {
  const owned = await server.rows(
    'SELECT 1 FROM sync_jobs WHERE organization_id = $1 AND collection = $2 AND owner IS NOT NULL',
    [organizationId, collection],
  )
  // Asked before each run: the locks are those of all jobs that all workers have in hand.
  if (owned.length === 0) return false
  const locks = await advisoryLocks(server)
  return locks.has(String(lockKey(server.address.schema, organizationId, collection)))
}

/** Jobs that a worker has not given back, and whose lock is gone: it died, or was cut off. */
export async function abandonedJobs(
  server: Server,
): Promise<{ organizationId: string; collection: string }[]> {
  const owned = await server.rows<{ organizationId: string; collection: string }>(`
    SELECT organization_id AS "organizationId", collection FROM sync_jobs WHERE owner IS NOT NULL AND configured = 1
  `)
  if (owned.length === 0) return []
  const locks = await advisoryLocks(server)
  return owned.filter(
    ({ organizationId, collection }) =>
      !locks.has(String(lockKey(server.address.schema, organizationId, collection))),
  )
}
