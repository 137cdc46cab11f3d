import type { Config } from '../../config/config.ts'
import { MirrorError } from '../../errors.ts'
import { storedFacts } from '../../store/core/status.ts'
import { POSTGRES, runRule } from '../../store/postgres/driver.ts'
import { serverTime } from '../../store/postgres/server/clock.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import type { MirrorPlace, OpenMirror, OpenOptions, RuleRunner, ServedMirror } from '../mirror.ts'
import type { MirrorFacts } from '../read-status.ts'
import type { ReadingTask } from '../reading/read.ts'
import type { Runtime } from '../runtime.ts'
import { openServerForReading } from './connect.ts'

// A mirror on a PostgreSQL server, as `MirrorKind` describes it. What only some commands need is loaded when they need it.

export async function isMade(config: Config, runtime: Runtime): Promise<boolean> {
  const server = await openServerForReading(config, runtime)
  await server?.close()
  return server !== null
}

export async function open(options: OpenOptions): Promise<OpenMirror> {
  const { openServer } = await import('./open.ts')
  return openServer(options)
}

export function ruleRunner(server: Server): RuleRunner {
  return { run: (rule) => runRule(server, rule(POSTGRES)), close: () => server.close() }
}

export function writeFault(): string | null {
  return null
}

export async function read(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { readOnServer } = await import('./reading.ts')
  await readOnServer(runtime, task)
}

export async function readFacts({ config }: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  const server = await openServerForReading(config, runtime)
  if (!server) return null
  try {
    return await factsOn(server, runtime)
  } finally {
    await server.close()
  }
}

function factsOn(server: Server, { isAlive }: Pick<Runtime, 'isAlive'>): Promise<MirrorFacts> {
  return server.reading(async (sql) => runRule(sql, storedFacts(POSTGRES, isAlive, await serverTime(sql))))
}

/** After this long, a probe or an answer says that the server is away. Milliseconds. */
const PROBE_MS = 3000
const FACTS_MS = 10_000

/** What the listener reads of a mirror on a PostgreSQL server, on the connections of the worker. */
export function createServedServer(
  server: Server,
  runtime: Pick<Runtime, 'sleep' | 'isAlive'>,
): ServedMirror {
  const { host, port } = server.address
  /** Rejects after that time. The task itself continues, and later calls wait for the same one. */
  function within<T>(ms: number, task: () => Promise<T>): () => Promise<T> {
    let pending: Promise<T> | null = null
    return () => {
      pending ??= task().finally(() => {
        pending = null
      })
      const over = new AbortController()
      const away = runtime.sleep(ms, over.signal).then(() => {
        throw new MirrorError(`the PostgreSQL server at ${host}:${port} does not answer; it is waited for`)
      })
      // The loser of the race may reject later.
      away.catch(() => {})
      pending.catch(() => {})
      return Promise.race([pending, away]).finally(() => over.abort())
    }
  }

  return {
    probe: within(PROBE_MS, async () => {
      await server.rows('SELECT 1 FROM sync_settings LIMIT 1')
    }),
    writeFault: () => null,
    facts: within(FACTS_MS, () => factsOn(server, runtime)),
  }
}
