import { advisoryLocks, lockKey } from '../leases.ts'
import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import { LISTS, TOUCH_EVERY_MS } from './boss.ts'
import { queueSchema } from './schema.ts'

/** A worker that lives is heard more often. */
const SILENT_MS = TOUCH_EVERY_MS + 2000

/**
 * Lists that a silent worker has taken from the queue, and that nobody reads: it died. Its lease alone does not tell that once
 * another process had the list meanwhile, such as for a refresh.
 */
export async function silentClaims(
  server: Server,
): Promise<{ organizationId: string; collection: string }[]> {
  const { schema } = server.address
  const silent = await server.rows<{ organizationId: string; collection: string }>(
    `
      SELECT data ->> 'organizationId' AS "organizationId", data ->> 'collection' AS collection
      FROM ${quoted(queueSchema(schema))}.job
      -- Each has a group: only of those pg-boss has an index.
      WHERE name = $1 AND state = 'active' AND group_id IS NOT NULL AND heartbeat_on < now() - $2::bigint * interval '1 millisecond'
    `,
    [LISTS, SILENT_MS],
  )
  if (silent.length === 0) return []
  const locks = await advisoryLocks(server)
  return silent.filter(
    ({ organizationId, collection }) => !locks.has(String(lockKey(schema, organizationId, collection))),
  )
}
