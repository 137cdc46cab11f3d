import type { Config } from '../../config/config.ts'
import { type MirrorFacts, storedFacts } from '../../store/core/status.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { holdsMirror } from '../../store/postgres/migrate.ts'
import { serverTime } from '../../store/postgres/server/clock.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import type { MirrorPlace, OpenMirror, OpenOptions } from '../mirror.ts'
import type { ReadingTask } from '../reading.ts'
import type { Runtime } from '../runtime.ts'
import { connect } from './connect.ts'

// A mirror on a PostgreSQL server, as `MirrorKind` describes it. What only some commands need is loaded when they need it.

export async function isMade(config: Config, runtime: Runtime): Promise<boolean> {
  return (await onServer({ config }, runtime, async () => true)) !== null
}

export async function open(options: OpenOptions): Promise<OpenMirror> {
  const { openServer } = await import('./open.ts')
  return openServer(options)
}

export function writeFault(): string | null {
  return null
}

export async function read(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { readOnServer } = await import('./reading.ts')
  await readOnServer(runtime, task)
}

export function readFacts(place: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  return onServer(place, runtime, (server) => factsOn(server, runtime))
}

export function factsOn(server: Server, { isAlive }: Pick<Runtime, 'isAlive'>): Promise<MirrorFacts> {
  return server.reading(async (sql) => runRule(sql, storedFacts(isAlive, await serverTime(sql))))
}

/** Connects for reading, and changes nothing. Returns null if the schema holds no mirror yet. */
async function onServer<T>(
  { config }: Pick<MirrorPlace, 'config'>,
  runtime: Runtime,
  task: (server: Server) => Promise<T>,
): Promise<T | null> {
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(config?.postgres, runtime, report, 'reading')
  try {
    return (await holdsMirror(server)) ? await task(server) : null
  } finally {
    await server.close().catch(() => {})
  }
}
