import type { PostgresSettings } from '../config/postgres-address.ts'
import { MirrorError } from '../errors.ts'
import { exec } from '../store/core/sql.ts'
import { type MirrorFacts, storedFacts } from '../store/core/status.ts'
import { serverAt } from '../store/postgres/address.ts'
import { serverBudgets } from '../store/postgres/clock.ts'
import { runRule } from '../store/postgres/connections.ts'
import { holdsMirror, makeSchema } from '../store/postgres/migrate.ts'
import { isUnknownName, meaningOfSql, stream, withPlaceholders } from '../store/postgres/query.ts'
import type { WorkQueue } from '../store/postgres/queue.ts'
import { connectServer, measureClock, runnerOn, type Server } from '../store/postgres/server.ts'
import type { Database, OpenOptions } from './mirror.ts'
import { noMirror } from './place.ts'
import type { Reader } from './reading.ts'
import type { Runtime } from './runtime.ts'

// A mirror in a schema of a PostgreSQL server.

/** How often the server's clock is measured, even if no list has a limit of requests. */
const MEASURE_EVERY_MS = 60_000

/** After this long, a probe or an answer says that the server is away. Milliseconds. */
const PROBE_MS = 3000
const FACTS_MS = 10_000

/** Opens the mirror, or makes it. Throws MirrorError. */
export async function openServer(
  settings: PostgresSettings,
  runtime: Runtime,
  log: OpenOptions['log'],
): Promise<Database> {
  const server = await connect(settings, runtime, (text) => log.info({ event: 'mirror_busy' }, text))
  try {
    await server.write(() => makeSchema(server))
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
  const stopMeasuring = runtime.every(MEASURE_EVERY_MS, () => {
    // The next statement reports a server that is away.
    measureClock(server).catch(() => {})
  })
  /** Makes a task reject after a time, in which it goes on. */
  const within = async <T>(ms: number, task: Promise<T>): Promise<T> => {
    const over = new AbortController()
    const late = runtime.sleep(ms, over.signal).then(() => {
      throw new MirrorError(`${serverAt(server.address)} does not answer; it is waited for`)
    })
    // The loser of the race may reject later.
    for (const one of [late, task]) one.catch(() => {})
    return Promise.race([late, task]).finally(() => over.abort())
  }
  let queue: WorkQueue | null = null
  return {
    runner: runnerOn(server, { now: server.clock.now, signal: runtime.signal }),
    budgets: serverBudgets(server),
    async probe() {
      await within(PROBE_MS, server.once(exec(['SELECT 1 FROM sync_settings LIMIT 1'])))
      return null
    },
    facts: () => within(FACTS_MS, factsOn(server, runtime)),
    async openQueue(onTrouble) {
      // Only `start` needs pg-boss.
      const { openQueue } = await import('../store/postgres/queue.ts')
      queue = await openQueue(server, onTrouble)
      return queue
    },
    async close() {
      // Its timers would keep the process alive.
      await queue?.close().catch(() => {})
      stopMeasuring()
      await server.close()
    },
  }
}

function factsOn(server: Server, { isAlive }: Runtime): Promise<MirrorFacts> {
  const rule = storedFacts(isAlive, server.clock.now())
  return server.readOnce((ask) => runRule(ask, rule))
}

/** What `status` reads; null if the schema holds no mirror yet. */
export function factsOnServer(settings: PostgresSettings, runtime: Runtime): Promise<MirrorFacts | null> {
  return toRead(settings, runtime, async (server, isThere) => (isThere ? factsOn(server, runtime) : null))
}

/** Reads on one snapshot, in a transaction that can only read, even if the role may write. Throws UsageError and MirrorError. */
export function readServer(
  settings: PostgresSettings,
  runtime: Runtime,
  read: (reader: Reader) => Promise<void>,
): Promise<void> {
  const none = noMirror(settings.shown)
  return toRead(settings, runtime, (server, isThere) =>
    server.readOnce(
      (ask, send) =>
        read({
          isThere: () => isThere,
          ask: (rule) => (isThere ? runRule(ask, rule) : Promise.reject(none)),
          async query(...asked) {
            const rows = await stream(send, withPlaceholders(...asked))
            if (!isThere) throw none
            return rows
          },
        }),
      (error) => (!isThere && isUnknownName(error) ? none : meaningOfSql(error)),
    ),
  )
}

/** Runs a task that only reads. `isThere`: whether the schema holds a mirror. */
async function toRead<T>(
  settings: PostgresSettings,
  runtime: Runtime,
  task: (server: Server, isThere: boolean) => Promise<T>,
): Promise<T> {
  const server = await connect(settings, runtime, (text) => runtime.stderr.write(`${text}\n`), 'reading')
  try {
    return await task(server, await holdsMirror(server))
  } finally {
    await server.close().catch(() => {})
  }
}

/** Connects to the server. Throws MirrorError. */
export async function connect(
  settings: PostgresSettings,
  runtime: Runtime,
  report: (message: string) => void,
  purpose?: 'reading',
): Promise<Server> {
  // Without a password pg looks into the file that PGPASSFILE names.
  const password = () => settings.password() ?? runtime.env.PGPASSWORD
  return connectServer({ ...settings, password }, { ...runtime, report }, purpose)
}
