import { createHash } from 'node:crypto'
import { type Db, PgBoss } from 'pg-boss'
import manifest from 'pg-boss/package.json' with { type: 'json' }
import { MirrorLostError } from '../../errors.ts'
import { quoted } from '../core/sql.ts'
import { translate } from './server/errors.ts'
import type { Server } from './server/server.ts'

// pg-boss divides the work of a mirror among its workers: lists that are to be read, and budgets whose lists are to be kept fresh. Of each there
// is at most one entry, waiting or taken. A claim is not a lease: a list may be handed out twice, and the worker with the lease reads it.

export type QueueName = 'lists' | 'refreshes'

/** What some worker is to do. */
export interface Entry {
  key: string
  /** Names its rate budget; pg-boss calls it the group. */
  budget: string
}

/** What this worker has taken. */
export interface Claim {
  id: string
  key: string
  /** Tells this handing-out of the entry from others. */
  retryCount: number
}

/**
 * An entry whose worker is silent for this long is handed out again, by whichever worker looks next: the least that pg-boss knows, so that a
 * worker that died is followed within 30 seconds.
 */
const HEARTBEAT_SECONDS = 10
const LOOK_EVERY_SECONDS = 4

const QUEUE = {
  policy: 'exclusive' as const,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  // The longest that pg-boss knows. A walk that takes longer is handed out again, to a worker that finds its lease taken.
  expireInSeconds: 86_400,
  deleteAfterSeconds: 60,
  retentionSeconds: 14 * 86_400,
  // An entry is given back whenever its worker stops or its list is busy. How often that happens says nothing.
  retryLimit: 1_000_000,
  retryBackoff: true,
  retryDelay: 1,
  retryDelayMax: 5,
}

/** Any number that nothing else uses for a lock. Workers that start at once make the schema one after another: pg-boss alone met a conflict there. */
const LOCK = 918_273_645

/** The entries that one statement adds. */
const BATCH = 5000

export type WorkQueue = Awaited<ReturnType<typeof openQueue>>

/** Starts pg-boss, on the connections of the mirror, which wait for a server that is away. `onTrouble` gets what its maintenance met. All throw MirrorError. */
export async function openQueue(server: Server, onTrouble: (error: unknown) => void) {
  const { address } = server
  const translating = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => {
      throw translate(address, error)
    })
  const boss = await server.transaction(async (sql) => {
    await sql.rows('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK, address.schema])
    return startBoss(server, (error) => onTrouble(translate(address, error)))
  })
  let closed: Promise<void> | null = null
  return {
    /** Adds entries, unless they are there. */
    async send(name: QueueName, entries: readonly Entry[]): Promise<void> {
      const jobs = inTurns(entries).map(({ key, budget }) => ({
        data: { key },
        singletonKey: key,
        group: { id: budget },
      }))
      for (let first = 0; first < jobs.length; first += BATCH)
        await translating(boss.insert(name, jobs.slice(first, first + BATCH)))
    },
    /** Takes the first entries, without those of some budgets. */
    async take(name: QueueName, most: number, except: readonly string[] = []): Promise<Claim[]> {
      const options = { batchSize: most, ignoreGroups: [...except] }
      const jobs = await translating(boss.fetch<{ key: string }>(name, options))
      return jobs.map(({ id, retryCount, data: { key } }) => ({ id, retryCount, key }))
    },
    /** Says that this worker lives. */
    async touch(name: QueueName, claims: readonly Claim[]): Promise<void> {
      if (claims.length > 0) await translating(boss.touch(name, [...claims]))
    },
    async finish(name: QueueName, claim: Claim): Promise<void> {
      await translating(boss.complete(name, claim))
    },
    /** Some worker takes it again: in a second, and later the more often this happens. */
    async giveBack(name: QueueName, claim: Claim): Promise<void> {
      await translating(boss.fail(name, claim, { reason: 'given back' }))
    },
    close(): Promise<void> {
      closed ??= boss.stop({ graceful: false })
      return closed
    },
  }
}

/** Makes and migrates the schema of pg-boss. */
async function startBoss(server: Server, onTrouble: (error: unknown) => void): Promise<PgBoss> {
  const schema = queueSchema(server.address.schema)
  const exists = await isQueueMade(server, schema)
  const boss = new PgBoss({
    // Quoted, so that capitals stay.
    schema: `"${schema}"`,
    db: databaseOf(server),
    // It needs a right on the database, even where the schema is there.
    createSchema: !exists,
    // It looks at schedules once a minute, and ours may have seconds: the workers watch the time.
    schedule: false,
    superviseIntervalSeconds: LOOK_EVERY_SECONDS,
    monitorIntervalSeconds: LOOK_EVERY_SECONDS,
    maintenanceIntervalSeconds: 60,
  })
  boss.on('error', onTrouble)
  try {
    await boss.start()
    for (const name of ['lists', 'refreshes']) {
      await boss.createQueue(name, QUEUE)
      // Fills its cache, so that no later call needs a second connection while it has one.
      await boss.findJobs(name, { key: '' })
    }
    return boss
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => {})
    throw error
  }
}

/** What pg-boss runs its statements by. */
function databaseOf(server: Server): Db {
  return {
    async executeSql(text, values) {
      // Several statements have several results, as pg-boss expects.
      return (await server.plain(text, values)) as Awaited<ReturnType<Db['executeSql']>>
    },
  }
}

/** pg-boss accepts no longer name of a schema. */
const LONGEST_SCHEMA = 50

/** The queue has a schema of its own: pg-boss names its tables `job`, `queue`, `version`, and a collection may have such a name. */
export function queueSchema(mirror: string): string {
  const name = `${mirror}_queue`
  if (name.length <= LONGEST_SCHEMA) return name
  const hash = createHash('sha256').update(mirror).digest('hex').slice(0, 8)
  return `${mirror.slice(0, LONGEST_SCHEMA - '__queue'.length - hash.length)}_${hash}_queue`
}

/** Whether the schema of the queue is there. Throws MirrorLostError for one of a newer version. */
async function isQueueMade(server: Server, schema: string): Promise<boolean> {
  const [found] = await server.rows<{ table: string | null }>(
    'SELECT to_regclass($2)::text AS table FROM pg_namespace WHERE nspname = $1',
    [schema, `${quoted(schema)}.version`],
  )
  if (!found?.table) return found !== undefined
  const [row] = await server.rows<{ version: number }>(`SELECT version FROM ${quoted(schema)}.version`)
  const known = manifest.pgboss.schema
  if ((row?.version ?? 0) <= known) return true
  throw new MirrorLostError(
    `the schema ${schema} was made by a newer admin-mirror (version ${row?.version} of the queue, this one knows ${known}): update this one`,
  )
}

/**
 * Entries in the order in which workers should take them: the first one of each budget, the second one of each, and so on. In the order of
 * the configuration, where the lists of a token often stand together, all workers would wait for the same few tokens.
 */
export function inTurns<E extends { budget: string }>(entries: readonly E[]): E[] {
  const ofBudgets = [...Map.groupBy(entries, ({ budget }) => budget).values()]
  const most = Math.max(0, ...ofBudgets.map(({ length }) => length))
  return Array.from({ length: most }, (_none, turn) =>
    ofBudgets.flatMap((all) => all.slice(turn, turn + 1)),
  ).flat()
}
