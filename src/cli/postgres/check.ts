import { type Finding, fail, ok } from '../../check/finding.ts'
import type { Config } from '../../config/config.ts'
import { MirrorError } from '../../errors.ts'
import { assertQueueSchema } from '../../store/postgres/queue/schema.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'

/** Whether the PostgreSQL server can be used, without changing anything. */
export async function checkPostgres(config: Config, runtime: Runtime): Promise<Finding[]> {
  try {
    const server = await openPostgresForReading(config, runtime)
    if (!server) return [ok('mirror', `${config.database} can be reached; the first sync makes the mirror`)]
    try {
      // Without it no `start` begins.
      await assertQueueSchema(server)
    } finally {
      await server.close()
    }
    return [ok('mirror', `${config.database} holds the mirror`)]
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return [fail('mirror', 4, error.message, null)]
  }
}
