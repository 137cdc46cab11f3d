import { JobError } from '../../../errors.ts'
import { dropViews, viewedTable } from '../../core/fit.ts'
import { changesViewName } from '../../core/names.ts'
import { exec, one, quoted, type Rule } from '../../core/sql.ts'
import {
  type ConfiguredCollection,
  dropForOtherKey,
  dropTables,
  makeTables,
  planTables,
} from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { makeChangesView } from './alter.ts'

/** Two workers that make tables at once would each find a name free. */
const LOCK_TABLES =
  "SELECT pg_advisory_xact_lock(hashtext('admin-mirror tables'), hashtext(current_schema()))"

/**
 * Makes the tables of every configured collection, so that queries work before the first row. Makes tables without rows
 * anew if the key has changed.
 */
export async function makeConfigured(
  server: Server,
  collections: readonly ConfiguredCollection[],
): Promise<void> {
  for (const collection of collections) {
    try {
      await ensureTables(server, collection)
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/** Makes the tables of a collection if there are none. Throws JobError for another key, and for names that are taken. */
export async function ensureTables(server: Server, collection: ConfiguredCollection): Promise<void> {
  if ((await runRule(server, planTables(collection))) === 'nothing') return
  await server.transaction((sql) => runRule(sql, makeMissing(collection)))
}

function* makeMissing(collection: ConfiguredCollection): Rule<void> {
  yield* one(LOCK_TABLES)
  const { name } = collection
  const plan = yield* planTables(collection)
  if (plan === 'nothing') return
  if (plan === 'remake') {
    yield* dropAllViews(name)
    yield* dropForOtherKey(name)
  }
  yield* makeTables(POSTGRES, collection)
  yield* makeChangesView(viewedTable(POSTGRES, collection))
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export function* dropCollection(name: string): Rule<void> {
  yield* dropAllViews(name)
  yield* dropTables(name)
}

function* dropAllViews(name: string): Rule<void> {
  yield* dropViews(POSTGRES, name)
  yield* exec([`DROP VIEW IF EXISTS ${quoted(changesViewName(name))}`])
}
