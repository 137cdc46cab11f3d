import { ok } from '../../check/finding.ts'
import { type CheckedMirror, collectionFindings, findingOf } from '../../check/mirror.ts'
import type { Config } from '../../config/config.ts'
import { MirrorError, UsageError } from '../../errors.ts'
import { impossibleCollections } from '../../store/core/tables.ts'
import { assertSameApi } from '../../store/postgres/address.ts'
import { POSTGRES, runRule } from '../../store/postgres/driver.ts'
import { assertQueueSchema } from '../../store/postgres/queue/schema.ts'
import type { Origin } from '../../store/sqlite/publish/origin.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'
import { originOn } from './publishing.ts'

/** Whether the PostgreSQL server can be used, without changing anything. `baseUrl`: as of `checkMirrorFile`. */
export async function checkPostgres(
  config: Config,
  runtime: Runtime,
  baseUrl: string | null,
): Promise<CheckedMirror> {
  let origin: Origin | null = null
  let impossible: string[] = []
  try {
    const server = await openPostgresForReading(config, runtime)
    if (!server) {
      const message = `${config.database} can be reached; the first sync makes the mirror`
      return { findings: [ok('mirror', message)], origin }
    }
    try {
      // Without it no `start` begins.
      await assertQueueSchema(server)
      origin = await originOn(server)
      if (baseUrl !== null) await assertSameApi(server, baseUrl)
      impossible = await runRule(server, impossibleCollections(POSTGRES, config.collections))
    } finally {
      await server.close()
    }
    const held = ok('mirror', `${config.database} holds the mirror`)
    return { findings: [held, ...collectionFindings(impossible)], origin }
  } catch (error) {
    if (!(error instanceof MirrorError || error instanceof UsageError)) throw error
    return { findings: [findingOf(error)], origin }
  }
}
