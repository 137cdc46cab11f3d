import type { Config } from '../../config/config.ts'
import { gateClosedUntil, readStatus } from '../../store/postgres/read/status.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'

/** What `status` reads, on one snapshot; null if there is no mirror yet. */
export async function readPostgresStatus(
  config: Config,
  runtime: Runtime,
): Promise<Pick<Reader, 'status' | 'gateClosedUntil' | 'close'> | null> {
  const server = await openPostgresForReading(config, runtime)
  if (!server) return null
  try {
    return await server.reading(async (sql) => {
      const rows = await readStatus(sql, server.address.schema)
      const closedUntil = await gateClosedUntil(sql)
      return { status: () => rows, gateClosedUntil: () => closedUntil, close: () => {} }
    })
  } finally {
    await server.close()
  }
}
