import type { Config } from '../../config/config.ts'
import { advisoryLocks, readDaemons } from '../../store/postgres/daemons.ts'
import { readQueue } from '../../store/postgres/read/queue.ts'
import { gateClosedUntil, readStatus } from '../../store/postgres/read/status.ts'
import type { Runtime } from '../runtime.ts'
import type { StatusReader } from '../watch/read-status.ts'
import { openPostgresForReading } from './open.ts'

/** What `status` reads, on one snapshot; null if there is no mirror yet. */
export async function readPostgresStatus(config: Config, runtime: Runtime): Promise<StatusReader | null> {
  const server = await openPostgresForReading(config, runtime)
  if (!server) return null
  try {
    return await server.reading(async (sql) => {
      const { schema } = server.address
      const locks = await advisoryLocks(sql)
      const rows = await readStatus(sql, schema, locks)
      const daemons = await readDaemons(sql, schema, locks)
      const closedUntil = await gateClosedUntil(sql)
      const queue = await readQueue(sql, schema)
      return {
        queue: () => queue,
        status: () => rows,
        gateClosedUntil: () => closedUntil,
        daemons: () => daemons,
        close: () => {},
      }
    })
  } finally {
    await server.close()
  }
}
