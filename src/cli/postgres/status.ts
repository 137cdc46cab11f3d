import type { Config } from '../../config/config.ts'
import { COLUMN_TROUBLES_SQL, type ColumnTrouble } from '../../store/column-troubles.ts'
import { advisoryLocks, readDaemons } from '../../store/postgres/leases.ts'
import { readQueue } from '../../store/postgres/read/queue.ts'
import { gateClosedUntil, readStatus } from '../../store/postgres/read/status.ts'
import type { Sql } from '../../store/postgres/sql.ts'
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
      const daemons = await readDaemons(sql, schema, locks)
      return { ...(await readerOf(sql, schema, locks)), daemons: () => daemons, close: () => {} }
    })
  } finally {
    await server.close()
  }
}

/** What is known of the jobs, read at once. `locks`: those of the database. */
export async function readerOf(
  sql: Pick<Sql, 'rows'>,
  schema: string,
  locks: ReadonlySet<string>,
): Promise<Required<Pick<StatusReader, 'status' | 'gateClosedUntil' | 'columnTroubles' | 'queue'>>> {
  const rows = await readStatus(sql, schema, locks)
  const closedUntil = await gateClosedUntil(sql)
  const queue = await readQueue(sql, schema)
  const troubles = await sql.rows<ColumnTrouble>(COLUMN_TROUBLES_SQL)
  return {
    columnTroubles: () => troubles,
    status: () => rows,
    gateClosedUntil: () => closedUntil,
    queue: () => queue,
  }
}
