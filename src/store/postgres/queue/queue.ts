import { createHash } from 'node:crypto'
import { lives } from '../../core/leases.ts'
import { all, quoted, type Rule, timeOf } from '../../core/sql.ts'
import { runRule } from '../driver.ts'
import { translate } from '../server/errors.ts'
import type { Sql } from '../server/pool.ts'
import type { Server } from '../server/server.ts'
import { LISTS, startBoss, TOUCH_EVERY_MS } from './boss.ts'
import { queueSchema } from './schema.ts'

/** A list of an organization. */
export interface ListNames {
  organizationId: string
  collection: string
}

/** A list that is to be read. */
export interface QueuedList extends ListNames {
  /** Names its rate budget; pg-boss calls it the group. */
  budget: string
}

/** A list that this worker has taken from the queue. */
export interface Claim extends ListNames {
  id: string
  /** Tells this handing-out of the job from others. */
  retryCount: number
}

export type ListQueue = Awaited<ReturnType<typeof openQueue>>

/** The lists that one statement adds. */
const BATCH = 5000

/**
 * The lists that wait for a worker: at most one entry a list, waiting or taken. A claim is not a lease: a list may be handed out
 * twice, and the worker with the lease reads it.  All throw MirrorError.
 */
export async function openQueue(server: Server, onTrouble: (error: unknown) => void) {
  const { address } = server
  const translating = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => {
      throw translate(address, error)
    })
  const boss = await startBoss(server, (error) => onTrouble(translate(address, error)))
  await server.rows(DELETE_OLD_TICKS)
  let closed: Promise<void> | null = null

  async function insert(
    sql: Pick<Sql, 'rows'>,
    jobs: readonly ReturnType<typeof jobOf>[],
  ): Promise<Set<string>> {
    const executeSql = async (text: string, values: unknown[] = []) => ({
      rows: await sql.rows<unknown>(text, values),
    })
    const added = new Set<string>()
    for (let first = 0; first < jobs.length; first += BATCH) {
      const options = { db: { executeSql }, returnId: true }
      for (const id of (await boss.insert(LISTS, jobs.slice(first, first + BATCH), options)) ?? [])
        added.add(id)
    }
    return added
  }

  /** Adds lists, unless they are there. */
  async function add(lists: readonly QueuedList[]): Promise<void> {
    const jobs = inTurns(lists).map((list) => jobOf(list, null))
    await server.transaction((sql) => insert(sql, jobs))
  }

  return {
    add,
    /**
     * Adds the lists of a schedule whose time `at` (epoch milliseconds) has come, once for all workers. Returns the lists that
     * still wait or are being read, or null if another worker has made this tick.
     */
    async tick(schedule: string, at: number, lists: readonly QueuedList[]): Promise<QueuedList[] | null> {
      // All of a tick or nothing: a worker that dies in the middle leaves it to the others, which wait at the row for its end.
      return server.transaction(async (sql) => {
        const time = timeOf(at)
        const isOurs = (await sql.count(CLAIM_TICK, [tickName(schedule), time])) > 0
        if (!isOurs) return null
        const ordered = inTurns(lists)
        const jobs = ordered.map((list) => jobOf(list, time))
        const added = await insert(sql, jobs)
        return ordered.filter((_list, index) => !added.has(jobs[index]?.id ?? ''))
      })
    },
    /** Takes the first lists, without those of some budgets. */
    async take(most: number, except: readonly string[] = []): Promise<Claim[]> {
      const jobs = await translating(
        boss.fetch<ListNames>(LISTS, {
          batchSize: most,
          ignoreGroups: [...except],
        }),
      )
      return jobs.map(({ id, retryCount, data: { organizationId, collection } }) => ({
        id,
        retryCount,
        organizationId,
        collection,
      }))
    },
    /** Says that this worker lives. */
    async touch(claims: readonly Claim[]): Promise<void> {
      if (claims.length > 0) await translating(boss.touch(LISTS, [...claims]))
    },
    /** Ends a job. `errorCode`: why its run failed. */
    async finish(claim: Claim, errorCode: string | null): Promise<void> {
      await translating(boss.complete(LISTS, claim, errorCode === null ? null : { error_code: errorCode }))
    },
    /** Some worker takes it again: in a second, and later the more often this happens. */
    async giveBack(claim: Claim): Promise<void> {
      await translating(boss.fail(LISTS, claim, { reason: 'given back' }))
    },
    /** Hands out again what workers that died have left unread. `find`: a list of this worker's configuration. */
    async rescue(find: (list: ListNames) => QueuedList | undefined): Promise<void> {
      for (const left of await runRule(server, listsOfTheDead(server.address.schema))) {
        const list = find(left)
        if (!list) continue
        const jobs = await translating(boss.findJobs(LISTS, { key: keyOf(list) }))
        const taken = jobs.filter(({ state }) => state === 'active')
        // With its retryCount, so that of several workers one succeeds.
        if (taken.length > 0) await translating(boss.fail(LISTS, taken, { reason: 'its worker is gone' }))
        // A command by hand had the list: the queue has no entry of it.
        else await add([list])
      }
    },
    close(): Promise<void> {
      closed ??= boss.stop({ graceful: false })
      return closed
    },
  }
}

function keyOf({ organizationId, collection }: ListNames): string {
  return `${organizationId}/${collection}`
}

function jobOf(list: QueuedList, tick: string | null) {
  const { organizationId, collection, budget } = list
  return {
    ...(tick === null ? {} : { id: idOf(`${keyOf(list)} ${tick}`) }),
    data: { organizationId, collection },
    singletonKey: keyOf(list),
    group: { id: budget },
  }
}

function idOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}

const PREFIX = 'tick '

function tickName(schedule: string): string {
  return PREFIX + createHash('sha256').update(schedule).digest('hex').slice(0, 16)
}

// Of workers that come at once the first one writes; the others wait for the end of its transaction, and find its time. One in
// the future comes from a wrong clock.
const CLAIM_TICK = `
  INSERT INTO sync_settings AS known (name, value) VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value
  WHERE known.value COLLATE "C" < excluded.value COLLATE "C"
    OR known.value::timestamptz > clock_timestamp() + interval '1 minute'
`

/** Ticks of schedules that are no longer configured. */
const DELETE_OLD_TICKS = `
  DELETE FROM sync_settings
  WHERE starts_with(name, '${PREFIX}') AND value COLLATE "C" < to_char(now() - interval '2 days', 'YYYY-MM-DD')
`

/**
 * Lists in the order in which workers should take them: the first one of each budget, the second one of each, and so on. In the
 * order of the configuration, where the lists of a token often stand together, all workers would wait for the same few tokens.
 */
export function inTurns<L extends { budget: string }>(lists: readonly L[]): L[] {
  const turns: L[][] = []
  const counts = new Map<string, number>()
  for (const list of lists) {
    const turn = counts.get(list.budget) ?? 0
    counts.set(list.budget, turn + 1)
    const others = turns[turn]
    if (others) others.push(list)
    else turns[turn] = [list]
  }
  return turns.flat()
}

/** A worker that lives is heard more often. */
const SILENT_MS = TOUCH_EVERY_MS + 2000

/**
 * Lists whose worker died or was cut off, and that no process reads: jobs that still name an owner who is gone, and queue entries whose
 * worker has been silent. The job alone does not show it if another process had the list meanwhile, as for a refresh, or if the worker died
 * before it took the lease.
 */
export function listsOfTheDead(schema: string): Rule<ListNames[]> {
  return all<ListNames>(
    `
      SELECT organization_id AS "organizationId", collection
      FROM sync_jobs
      WHERE owner IS NOT NULL AND configured = 1 AND NOT ${lives('owner')}
      UNION (
        SELECT data ->> 'organizationId', data ->> 'collection'
        FROM ${quoted(queueSchema(schema))}.job
        -- Each has a group: only of those pg-boss has an index.
        WHERE name = :queue AND state = 'active' AND group_id IS NOT NULL
          AND heartbeat_on < now() - :silent::bigint * interval '1 millisecond'
        EXCEPT SELECT organization_id, collection FROM sync_jobs WHERE ${lives('owner')}
      )
    `,
    { queue: LISTS, silent: SILENT_MS },
  )
}
