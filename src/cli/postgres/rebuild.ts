import type { Config } from '../../config/config.ts'
import { collectionNames, rebuildCollection } from '../../store/postgres/tables/rebuild.ts'
import { chosen, rebuildOne } from '../commands/rebuild.ts'
import { noMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { isMadeOnServer } from './open.ts'
import { withPostgres } from './with-postgres.ts'

/** `rebuild` on a PostgreSQL mirror. */
export async function rebuildOnPostgres(
  runtime: Runtime,
  config: Config,
  collections: readonly string[],
): Promise<number> {
  const configured = config.collections.map(({ name }) => name)
  if (!(await isMadeOnServer(config, runtime))) {
    chosen(collections, [], configured)
    throw noMirror(config.database)
  }
  return withPostgres(config, runtime, async ({ server, now }) => {
    const names = chosen(collections, await collectionNames(server), configured)
    const rebuilding = {
      collection: (name: string) => rebuildCollection(server, name, { now, signal: runtime.signal }),
    }
    for (const name of names) await rebuildOne(runtime, rebuilding, name)
    return 0
  })
}
