import { PgBoss } from 'pg-boss'
import type { Queue } from '../../schedule/workers.ts'
import { one } from '../core/sql.ts'
import { runRule } from './connections.ts'
import { lockSchema } from './migrate.ts'
import type { Server } from './server.ts'

// pg-boss divides the work of a mirror among its workers: lists that are to be read, and budgets whose lists are to be kept fresh. Of each there
// is at most one entry, waiting or taken. A claim is not a lease: a list may be handed out twice, and the worker with the lease reads it.

const QUEUE = {
  policy: 'exclusive' as const,
  // An entry whose worker is silent for this long is handed out again, by whichever worker looks next: the least that pg-boss knows.
  heartbeatSeconds: 10,
  // The longest that pg-boss knows. A walk that takes longer is handed out again, to a worker that finds its lease taken.
  expireInSeconds: 86_400,
  deleteAfterSeconds: 60,
  // An entry is given back whenever its worker stops or its list is busy. How often that happens says nothing.
  retryLimit: 1_000_000,
  retryBackoff: true,
  retryDelay: 1,
  retryDelayMax: 5,
}

const LOOK_EVERY_SECONDS = 4

/** The lists of one budget that are read at once, by all workers: else they would take all places, and requests of other budgets would go unused. */
const MOST_OF_BUDGET = 25

export interface WorkQueue extends Queue {
  close(): Promise<void>
}

/** Starts pg-boss, on the connections of the mirror, which wait for a server that is away. `onTrouble` gets what its maintenance met. All throw MirrorError. */
export async function openQueue(server: Server, onTrouble: (error: unknown) => void): Promise<WorkQueue> {
  // Its own: the tables of pg-boss are `job`, `queue` and `version`, and a collection may have such a name.
  const schema = `${server.address.schema}_queue`
  const boss = await server.transaction(async (ask) => {
    // Workers that start at once make the queue one after another: pg-boss alone met a conflict there.
    await runRule(ask, lockSchema(schema))
    return startBoss(server, schema, onTrouble)
  })
  return {
    async send(name, entries) {
      const jobs = inTurns(entries).map(({ key, budget }) => ({
        data: { key },
        singletonKey: key,
        group: { id: budget },
      }))
      if (jobs.length > 0) await boss.insert(name, jobs)
    },
    async take(name, most) {
      const options = { batchSize: most, groupConcurrency: MOST_OF_BUDGET }
      const jobs = await boss.fetch<{ key: string }>(name, options)
      return jobs.map(({ id, retryCount, data: { key } }) => ({ id, retryCount, key }))
    },
    async touch(name, claims) {
      // Its types do not have the ids.
      const { settled } = (await boss.touch(name, [...claims])) as { settled?: string[] }
      return new Set(settled)
    },
    // `retryCount` tells this handing-out of the entry from others.
    finish: async (name, claim) => void (await boss.complete(name, claim)),
    giveBack: async (name, claim) => void (await boss.fail(name, claim, { reason: 'given back' })),
    close: () => boss.stop({ graceful: false }),
  }
}

/** Makes and migrates the schema of pg-boss. */
async function startBoss(
  server: Server,
  schema: string,
  onTrouble: (error: unknown) => void,
): Promise<PgBoss> {
  const boss = new PgBoss({
    schema,
    // Several statements have several results, as pg-boss expects.
    db: { executeSql: (text, values) => server.plain(text, values) as Promise<{ rows: never[] }> },
    // It needs a right on the database, even where the schema is there.
    createSchema: !(await server.read(one('SELECT 1 FROM pg_namespace WHERE nspname = :schema', { schema }))),
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

/**
 * Entries in the order in which workers should take them: the first one of each budget, the second one of each, and so on. In the order of
 * the configuration, where the lists of a token often stand together, all workers would wait for the same few tokens.
 */
export function inTurns<E extends { budget: string }>(entries: readonly E[]): E[] {
  const turns = [...Map.groupBy(entries, ({ budget }) => budget).values()].flatMap((all) => [
    ...all.entries(),
  ])
  return turns.toSorted(([turn], [other]) => turn - other).map(([, entry]) => entry)
}
