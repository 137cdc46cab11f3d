import { type MirrorFacts, storedFacts } from '../../store/core/status.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { holdsMirror } from '../../store/postgres/migrate.ts'
import { serverTime } from '../../store/postgres/server/clock.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import type { MirrorPlace } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'
import { connect } from './connect.ts'

/** Connects for reading, and changes nothing. Returns null if the schema holds no mirror yet. */
export async function readFacts({ config }: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(config?.postgres, runtime, report, 'reading')
  try {
    return (await holdsMirror(server)) ? await factsOn(server, runtime) : null
  } finally {
    await server.close().catch(() => {})
  }
}

export function factsOn(server: Server, { isAlive }: Pick<Runtime, 'isAlive'>): Promise<MirrorFacts> {
  return server.reading(async (sql) => runRule(sql, storedFacts(isAlive, await serverTime(sql))))
}
