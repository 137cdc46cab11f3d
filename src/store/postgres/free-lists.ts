import { timeOf } from '../core/sql.ts'
import { lockKey } from './leases.ts'
import type { Server } from './server/server.ts'

/** A list of an organization. */
export interface ListNames {
  organizationId: string
  collection: string
}

/** One worker takes at most so many lists at once: the others take what is left. */
const MOST_TAKEN = 8

/** Look at no more lists than this at once: others may have the first ones. */
const MOST_ASKED = 500

/**
 * For so long no other worker takes the list: its reading has begun by then, which shows by its lock, or its worker died. A list that it
 * has read meanwhile is not due any more. Milliseconds.
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

/** Of all jobs that any process works on. */
const LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
`

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
