import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import { LISTS } from './boss.ts'
import { queueSchema } from './schema.ts'

/**
 * Lets lists be taken that were added, or given back, before the server's clock was set back: they would wait until it says
 * again what it said then. No list waits so long by itself.
 */
export async function wakeFuture(server: Server): Promise<void> {
  await server.rows(
    `
      UPDATE ${quoted(queueSchema(server.address.schema))}.job
      SET start_after = now()
      WHERE name = $1 AND state < 'active' AND NOT blocked AND start_after > now() + interval '1 minute'
    `,
    [LISTS],
  )
}
