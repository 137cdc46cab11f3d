import type { Config } from '../../config/config.ts'
import { collectionNames, rebuildCollection } from '../../store/postgres/tables/rebuild.ts'
import { chosen, rebuildOne } from '../commands/rebuild.ts'
import type { Runtime } from '../runtime.ts'
import { withPostgres } from './with-postgres.ts'

/** `rebuild` on a PostgreSQL mirror. */
export function rebuildOnPostgres(
  runtime: Runtime,
  config: Config,
  collections: readonly string[],
): Promise<number> {
  const configured = config.collections.map(({ name }) => name)
  return withPostgres(config, runtime, async ({ server, now }) => {
    const names = chosen(collections, await collectionNames(server), configured)
    const rebuilding = {
      collection: (name: string) => rebuildCollection(server, name, { now, signal: runtime.signal }),
    }
    for (const name of names) await rebuildOne(runtime, rebuilding, name)
    return 0
  })
}
