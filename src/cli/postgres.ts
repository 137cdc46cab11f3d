import fs from 'node:fs'
import type { PostgresSettings } from '../config/postgres-address.ts'
import { MirrorError, systemCode } from '../errors.ts'
import { exec } from '../store/core/sql.ts'
import { type MirrorFacts, storedFacts } from '../store/core/status.ts'
import { placeOf, serverAt } from '../store/postgres/address.ts'
import { serverBudgets } from '../store/postgres/clock.ts'
import { askBy, runRule } from '../store/postgres/connections.ts'
import { holdsMirror, migrate } from '../store/postgres/migrate.ts'
import { isUnknownName, meaningOfSql, stream, withPlaceholders } from '../store/postgres/query.ts'
import type { WorkQueue } from '../store/postgres/queue.ts'
import { connectServer, measureClock, runnerOn, type Server } from '../store/postgres/server.ts'
import { type MirrorPlace, noMirror, type OpenMirror, type OpenOptions } from './mirror.ts'
import { assertExport, type ReadingTask, writeResult } from './reading.ts'
import type { Runtime } from './runtime.ts'

// A mirror in a schema of a PostgreSQL server.

/** Rows of one transaction. */
const FORGOTTEN_AT_ONCE = 5000

/** How often the server's clock is measured, even if no list has a limit of requests. */
const MEASURE_EVERY_MS = 60_000

/** After this long, a probe or an answer says that the server is away. Milliseconds. */
const PROBE_MS = 3000
const FACTS_MS = 10_000

/** Opens the mirror, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openServer(options: OpenOptions): Promise<OpenMirror> {
  const { config, runtime, log } = options
  const server = await connect(config.postgres, runtime, (text) => log.info({ event: 'mirror_busy' }, text))
  try {
    await migrate(server)
    // What only reads needs no code of the store.
    const { openOn } = await import('./open-mirror.ts')
    const mirror = await openOn(
      {
        runner: runnerOn(server, { now: server.clock.now, signal: runtime.signal }),
        place: placeOf(server.address),
        forgottenAtOnce: FORGOTTEN_AT_ONCE,
        budgets: serverBudgets(server),
        holding: (begin) => server.once(begin()),
      },
      options,
    )
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
      ...mirror,
      probe: () => within(PROBE_MS, server.once(exec(['SELECT 1 FROM sync_settings LIMIT 1']))),
      writeFault: () => null,
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
        await mirror.leases.close()
        await server.close()
      },
    }
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}

function factsOn(server: Server, { isAlive }: Runtime): Promise<MirrorFacts> {
  const rule = storedFacts(isAlive, server.clock.now())
  return server.readOnce((query) => runRule(askBy(query), rule))
}

/** What `status` reads; null if the schema holds no mirror yet. */
export async function readFacts({ config }: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  const server = await connect(config?.postgres, runtime, toStderr(runtime), { purpose: 'reading' })
  try {
    return (await holdsMirror(server)) ? await factsOn(server, runtime) : null
  } finally {
    await server.close().catch(() => {})
  }
}

const toStderr =
  ({ stderr }: Runtime) =>
  (text: string) =>
    stderr.write(`${text}\n`)

/**
 * Does what `query` or `export` asks for on one snapshot, in a transaction that can only read, even if the role may write. Throws UsageError and
 * MirrorError.
 */
export async function readOnServer(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { work, config, database } = task
  // Usage is checked before the server is asked.
  const statement = work.kind === 'query' ? withPlaceholders(work.sql, work.parameters) : null
  const server = await connect(config?.postgres, runtime, toStderr(runtime), { purpose: 'reading' })
  try {
    if (!(await holdsMirror(server))) {
      // So is SQL that is wrong in any mirror, before it is said that there is none yet.
      if (statement)
        await server.readOnce(
          (query) => stream(query, statement),
          (error) => (isUnknownName(error) ? noMirror(database) : meaningOfSql(error)),
        )
      else if (work.kind === 'export' && config) assertExport(work, config)
      throw noMirror(database)
    }
    await server.readOnce((send) => {
      const query = (...asked: Parameters<typeof withPlaceholders>) =>
        stream(send, withPlaceholders(...asked))
      return writeResult(runtime, { query, ask: (rule) => runRule(askBy(send), rule) }, task)
    }, meaningOfSql)
  } finally {
    await server.close()
  }
}

/** Connects to the server. `setting`: where the user has written its address. Throws MirrorError. */
export async function connect(
  settings: PostgresSettings | null | undefined,
  runtime: Runtime,
  report: (message: string) => void,
  { purpose, setting = '"database"' }: { purpose?: 'reading'; setting?: string } = {},
): Promise<Server> {
  if (!settings) throw new Error('the configuration names no PostgreSQL server')
  const { tls, authority, password, shown: _shown, ...address } = settings
  const { sleep, signal, env } = runtime
  return connectServer(
    {
      ...address,
      setting,
      tls: tls ? { authority: authority === null ? null : readAuthority(authority, setting) } : null,
      // Without one pg looks into the file that PGPASSFILE names.
      password: () => password() ?? env.PGPASSWORD,
    },
    // The sleep ends at the signal. One that begins after it lasts its whole time, so that attempts do not follow each other at once.
    { ...runtime, report, sleep: (ms) => (signal.aborted ? sleep(ms) : sleep(ms, signal)) },
    purpose,
  )
}

function readAuthority(file: string, setting: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw new MirrorError(
      `the file that sslrootcert in ${setting} names cannot be read (${systemCode(error) ?? 'unreadable'}): ${file}; name the certificate of the authority that signed the server's`,
    )
  }
}
