import { type Db, PgBoss } from 'pg-boss'
import type { Server } from '../server/server.ts'
import { isQueueMade, queueSchema } from './schema.ts'

/** The one queue of a mirror. A job of it is one run of one list. */
export const LISTS = 'lists'

/** A job whose worker is silent for this long is handed out again, if no worker has noticed its death before (`listsOfTheDead`). */
const HEARTBEAT_SECONDS = 30

export const TOUCH_EVERY_MS = 8000

/** For how long ended jobs are kept, for the numbers of `status`; and how often those that are older are deleted. */
const KEPT_SECONDS = 3600
const DELETE_EVERY_SECONDS = 600

const QUEUE = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  // The longest that pg-boss knows. A walk that takes longer is handed out again, to a worker that finds its lease taken.
  expireInSeconds: 86_400,
  deleteAfterSeconds: KEPT_SECONDS,
  retentionSeconds: 14 * 86_400,
  // A job is given back whenever its worker stops or its list is busy. How often that happens says nothing.
  retryLimit: 1_000_000,
  retryBackoff: true,
  retryDelay: 1,
  retryDelayMax: 15,
}

/** Any number that nothing else uses for a lock. Workers that start at once make the schema one after another: pg-boss alone met a conflict there. */
const LOCK = 918_273_645

/**
 * Starts pg-boss on the connections of the mirror, which wait for a server that is away. Makes and migrates its schema; any
 * number of workers may do so at once. Throws MirrorError. `onTrouble` gets what its maintenance met.
 */
export function startBoss(server: Server, onTrouble: (error: unknown) => void): Promise<PgBoss> {
  return server.transaction(async (sql) => {
    await sql.rows('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK, server.address.schema])
    return startAlone(server, onTrouble)
  })
}

async function startAlone(server: Server, onTrouble: (error: unknown) => void): Promise<PgBoss> {
  const exists = await isQueueMade(server)
  const boss = new PgBoss({
    // Quoted, so that capitals stay.
    schema: `"${queueSchema(server.address.schema)}"`,
    db: databaseOf(server),
    // It needs a right on the database, even where the schema is there.
    createSchema: !exists,
    // It knows minutes; ours are made by the scheduler.
    schedule: false,
    maintenanceIntervalSeconds: DELETE_EVERY_SECONDS,
  })
  boss.on('error', onTrouble)
  try {
    await boss.start()
    await boss.createQueue(LISTS, { ...QUEUE, policy: 'exclusive' })
    await boss.updateQueue(LISTS, QUEUE)
    // Fills its cache, so that no later call needs a second connection while it has one.
    await boss.findJobs(LISTS, { key: '' })
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
