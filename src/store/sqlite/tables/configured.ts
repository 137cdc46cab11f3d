import { JobError } from '../../../errors.ts'
import { shapeOf } from '../../columns/catalog.ts'
import { tablesSql } from '../../core/declarations.ts'
import { dropViews, viewedTable } from '../../core/fit.ts'
import { KINDS, namesOfTables, tableName } from '../../core/names.ts'
import { exec, type Rule } from '../../core/sql.ts'
import {
  type ConfiguredCollection,
  dropForOtherKey,
  dropTables,
  loadCatalog,
  makeTables,
  planTables,
} from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'
import { dropChangesView, ensureChangesView } from './changes-view.ts'

/**
 * Creates the tables of every configured collection, so that queries work before the first row. Recreates
 * tables without rows if the key has changed. Call it inside a transaction.
 */
export function makeConfigured(connection: Connection, collections: readonly ConfiguredCollection[]): void {
  for (const collection of collections) {
    try {
      runRule(connection, ensureTables(collection))
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/**
 * Creates the missing tables of a collection. Returns false where the name of the view of changes is a user's. Throws JobError for
 * another key, and for names that are taken.
 */
export function* ensureTables(collection: ConfiguredCollection): Rule<boolean> {
  const { name } = collection
  const plan = yield* planTables(collection)
  if (plan === 'remake') {
    yield* dropAllViews(name)
    yield* dropForOtherKey(name)
  }
  yield* plan === 'nothing' ? makeMissing(collection) : makeTables(SQLITE, collection)
  return yield* ensureChangesView(viewedTable(SQLITE, collection))
}

/** A user may have dropped one. */
function* makeMissing(collection: ConfiguredCollection): Rule<void> {
  const { name } = collection
  if ((yield* SQLITE.columnTypes(name)).size > 0) return
  yield* exec(tablesSql(SQLITE, shapeOf(name, yield* loadCatalog(SQLITE, collection))))
}

/** Whether users have put indexes or triggers on the tables of a collection. */
export function hasBelongings(connection: Connection, name: string): boolean {
  const find = connection.prepare(`
    SELECT name FROM sqlite_schema
    WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ? COLLATE NOCASE
  `)
  const ours = namesOfTables(SQLITE, name)
  const found = KINDS.flatMap((kind) => find.pluck().all(tableName(name, kind)) as string[])
  return found.some((one) => !ours.includes(one))
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export function* dropCollection(name: string): Rule<void> {
  yield* dropAllViews(name)
  yield* dropTables(name)
}

function* dropAllViews(name: string): Rule<void> {
  yield* dropViews(SQLITE, name)
  yield* dropChangesView(name)
}
