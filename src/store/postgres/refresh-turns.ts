import type { DueRefresh, RefreshTurns } from '../../sync/refresh-turns.ts'
import { timeOf } from '../core/sql.ts'
import { lockKey } from './leases.ts'
import type { Server } from './server/server.ts'

/** One worker takes at most so many lists at once: the others take what is left. */
const MOST_TAKEN = 8

/** Lock the rows of at most so many free lists. */
const MOST_FREE = 50

/** Look at no more due lists than this at once: others may have the first ones. */
const MOST_ASKED = 500

/**
 * A turn is lost if no run of its list begins within this time: its worker died, or never heard of it. Otherwise a list that is
 * refreshed once a day would be a day late. Milliseconds.
 */
const TURN_MS = 180_000

/** Workers go by the server's clock, and differ by less. Milliseconds. */
const TOLERANCE_MS = 1000

interface Row {
  budget: string
  freeAt: number
  /** The server's time. */
  at: number
  /** Numbers of lists among those that were asked for, from 1. */
  taken: number[]
  free: number[]
}

/**
 * The pace of refreshes, one for all workers on the schema. `atOnceMs`: the share may be used so far ahead. One statement takes
 * lists of any number of budgets; workers that ask at once take theirs one after the other. `clock`: the caller's is for tests and
 * simulations, since its time is old where the statement has waited.
 */
export function createRefreshTurns(
  server: Server,
  atOnceMs: number,
  clock: 'server' | 'caller' = 'server',
): RefreshTurns {
  /** The budgets that have a row. */
  const known = new Set<string>()

  async function noteBudgets(budgets: readonly string[]): Promise<void> {
    const news = budgets.filter((budget) => !known.has(budget))
    if (news.length === 0) return
    await server.rows(NOTE_BUDGETS, [news])
    for (const budget of news) known.add(budget)
  }

  return {
    most: MOST_TAKEN,
    async take<L extends DueRefresh>(due: readonly L[], now: number, isOwn: boolean) {
      const asked = due.slice(0, MOST_ASKED)
      const budgets = [...new Set(asked.map(({ budget }) => budget))]
      if (asked.length === 0) return { taken: [], others: [], freeAt: new Map() }
      await noteBudgets(budgets)
      const rows = await server.rows<Row>(TAKE, [
        asked.map(({ organizationId }) => organizationId),
        asked.map(({ collection }) => collection),
        asked.map(({ budget }) => budget),
        asked.map(({ needs }) => needs),
        asked.map(({ interval }) => interval),
        asked.map((one) => String(lockKey(server.address.schema, one.organizationId, one.collection))),
        clock === 'caller' ? timeOf(now) : null,
        atOnceMs,
        isOwn,
        MOST_TAKEN,
        MOST_FREE,
        TURN_MS,
        TOLERANCE_MS,
      ])
      const freeAt = new Map(rows.map((row) => [row.budget, row.freeAt]))
      // One that was forgotten meanwhile is noted again.
      for (const budget of budgets) if (!freeAt.has(budget)) known.delete(budget)
      const taken = new Set(rows.flatMap((row) => row.taken))
      const free = new Set(rows.flatMap((row) => row.free))
      const looked = free.size < MOST_FREE ? asked.length : Math.max(...free)
      const at = rows[0]?.at ?? now
      const isOthers = ({ budget }: L, index: number) =>
        index < looked && !free.has(index + 1) && (freeAt.get(budget) ?? Number.POSITIVE_INFINITY) <= at
      return {
        taken: asked.filter((_list, index) => taken.has(index + 1)),
        others: asked.filter(isOthers),
        freeAt,
      }
    },
  }
}

const NOTE_BUDGETS = `
  INSERT INTO sync_gates (scope, closed_until)
  SELECT scope, to_timestamp(0) FROM unnest($1::text[]) AS one (scope) ORDER BY scope
  ON CONFLICT (scope) DO NOTHING
`

/** When a run of the job last began. */
const LAST_RUN = `
  SELECT started_at
  FROM sync_runs AS run
  WHERE run.organization_id = asked.organization_id AND run.collection = asked.collection
  ORDER BY id DESC
  LIMIT 1
`

/** Of all jobs that any process works on. */
const LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
`

// The rows of the budgets are locked before the time is taken and those of their lists are read, so a worker that waited for
// them sees what the other took. A list whose row is locked is being read. `used`: a clock that was set back delays no refresh.
const TAKE = `
  WITH asked AS (
      SELECT *
      FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::double precision[], $6::bigint[])
        WITH ORDINALITY AS one (organization_id, collection, budget, needs, every, lock, place)
    ),
    locked AS MATERIALIZED (
      SELECT scope AS budget, refreshes_at, refreshes_until
      FROM sync_gates
      WHERE scope = ANY ($3::text[])
      ORDER BY scope
      FOR NO KEY UPDATE
    ),
    moment AS MATERIALIZED (
      SELECT coalesce($7::timestamptz, clock_timestamp()) AS at FROM (SELECT count(*) FROM locked) AS waited
    ),
    gate AS MATERIALIZED (
      SELECT
        budget,
        at,
        greatest(at, refreshes_until - greatest(interval '0', refreshes_at - at)) AS used,
        refreshes_at > at AS is_set_back
      FROM locked, moment
    ),
    free AS MATERIALIZED (
      SELECT asked.*, gate.used, gate.at
      FROM gate
      JOIN asked USING (budget)
      JOIN sync_jobs AS job USING (organization_id, collection)
      WHERE gate.used <= gate.at + $8::double precision * interval '1 millisecond'
        AND (
          $9::boolean
          OR (
            (
              job.refresh_turn IS NULL
              OR job.refresh_turn + asked.every * interval '1 millisecond' <= gate.at
              OR job.refresh_turn - asked.every * interval '1 millisecond' > gate.at
              OR (
                job.refresh_turn + $12::double precision * interval '1 millisecond' <= gate.at
                AND (${LAST_RUN}) >= job.refresh_turn - $13::double precision * interval '1 millisecond' IS NOT TRUE
              )
            )
            AND (job.owner IS NULL OR asked.lock <> ALL (ARRAY(${LOCKS})))
          )
        )
      ORDER BY asked.place
      LIMIT $11
      FOR NO KEY UPDATE OF job SKIP LOCKED
    ),
    placed AS (
      SELECT *, used + (sum(needs) OVER (PARTITION BY budget ORDER BY place) - needs) * interval '1 millisecond' AS begins
      FROM free
    ),
    taken AS (
      SELECT *
      FROM placed
      WHERE begins <= at + $8::double precision * interval '1 millisecond'
      ORDER BY place
      LIMIT $10
    ),
    spent AS (
      SELECT budget, sum(needs) * interval '1 millisecond' AS needs, array_agg(place::int) AS places
      FROM taken
      GROUP BY budget
    ),
    turned AS (
      UPDATE sync_jobs AS job
      SET refresh_turn = taken.at
      FROM taken
      WHERE job.organization_id = taken.organization_id AND job.collection = taken.collection
    ),
    noted AS (
      UPDATE sync_gates
      SET refreshes_at = gate.at, refreshes_until = gate.used + coalesce(spent.needs, interval '0')
      FROM gate
      LEFT JOIN spent USING (budget)
      WHERE scope = gate.budget AND (gate.is_set_back OR spent.needs IS NOT NULL)
    )
  SELECT
    gate.budget,
    extract(epoch FROM gate.at)::double precision * 1000 AS at,
    extract(epoch FROM gate.used + coalesce(spent.needs, interval '0'))::double precision * 1000 - $8 AS "freeAt",
    coalesce(spent.places, '{}') AS taken,
    ARRAY(SELECT place::int FROM free WHERE free.budget = gate.budget) AS free
  FROM gate
  LEFT JOIN spent USING (budget)
`
