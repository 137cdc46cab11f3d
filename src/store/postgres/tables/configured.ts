import { JobError } from '../../../errors.ts'
import { keyColumnNames, splitKey } from '../../columns/catalog.ts'
import { exec } from '../../core/sql.ts'
import {
  type ConfiguredCollection,
  dropForOtherKey,
  dropTables,
  makeTables,
  planTables,
} from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { POSTGRES_LIMITS, quoted, type Sql } from '../sql.ts'
import { loadViews } from './records.ts'
import { changesViewName, changesViewSql } from './shape.ts'

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
  const { name, key } = collection
  if ((await runRule(server, planTables(collection))) === 'nothing') return
  await server.transaction(async (sql) => {
    await sql.rows(LOCK_TABLES)
    const plan = await runRule(sql, planTables(collection))
    if (plan === 'nothing') return
    if (plan === 'remake') {
      await dropAllViews(sql, name)
      await runRule(sql, dropForOtherKey(name))
    }
    await runRule(sql, makeTables(POSTGRES, collection))
    const keyColumns = keyColumnNames(splitKey(key), POSTGRES_LIMITS)
    await runRule(sql, exec(changesViewSql({ name, keyColumns })))
  })
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export async function dropCollection(sql: Sql, name: string): Promise<void> {
  await dropAllViews(sql, name)
  await runRule(sql, dropTables(name))
}

async function dropAllViews(sql: Sql, name: string): Promise<void> {
  for (const view of (await loadViews(sql, name)).values())
    await sql.exec(`DROP VIEW IF EXISTS ${quoted(view.name)}`)
  await sql.rows('DELETE FROM sync_view_columns WHERE starts_with(view, $1)', [`${name}__`])
  await sql.exec(`DROP VIEW IF EXISTS ${quoted(changesViewName(name))}`)
}
