import { JobError } from '../../../errors.ts'
import { assertSameKey, shapeOf, splitKey } from '../../columns/catalog.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { changesViewName } from './changes-view.ts'
import { findCollection, loadCatalog, loadViews } from './records.ts'
import { createSql, KINDS, namesOfRelations, tableName } from './shape.ts'

/** A collection of the configuration, its key as dotted paths. */
export interface ConfiguredCollection {
  name: string
  key: readonly string[]
}

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
      await makeTables(server, collection)
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/** Makes the tables of a collection if there are none. Throws JobError for another key, and for names that are taken. */
export async function makeTables(server: Server, { name, key }: ConfiguredCollection): Promise<void> {
  const known = await findCollection(server, name)
  if (known && JSON.stringify(known.key) === JSON.stringify(key)) return
  if (Buffer.byteLength(name) > LONGEST_COLLECTION) throw tooLong(name)
  await server.transaction(async (sql) => {
    await sql.rows(LOCK_TABLES)
    const stored = await findCollection(sql, name)
    if (stored && JSON.stringify(stored.key) === JSON.stringify(key)) return
    if (stored) {
      if (!(await isWithoutRows(sql, name))) return assertSameKey(name, stored.key, key)
      await dropForOtherKey(sql, name)
    }
    await assertNamesFree(sql, name)
    await sql.rows('INSERT INTO sync_collections (name, key) VALUES ($1, $2)', [name, JSON.stringify(key)])
    await sql.exec(createSql(shapeOf(name, await loadCatalog(sql, name, splitKey(key)))))
  })
}

/** With the ends of the names of its tables it has to fit into the 63 bytes of a name. */
export const LONGEST_COLLECTION = 50

function tooLong(name: string): JobError {
  return new JobError(
    'CONFIGURATION',
    `the name ${name} is too long for tables of PostgreSQL: give the collection one of at most ${LONGEST_COLLECTION} bytes, and the address as its path`,
  )
}

/** Throws JobError if the collection has another key in the mirror, or a name of its tables is taken. */
export async function assertPossible(
  sql: Pick<Sql, 'rows'>,
  { name, key }: ConfiguredCollection,
): Promise<void> {
  const known = await findCollection(sql, name)
  if (known) assertSameKey(name, known.key, key)
  else await assertNamesFree(sql, name)
}

/** Why collections cannot be read into the mirror: each that has rows by another key, or whose tables' names are taken. */
export async function impossibleCollections(
  sql: Pick<Sql, 'rows'>,
  collections: readonly ConfiguredCollection[],
): Promise<string[]> {
  const messages: string[] = []
  for (const collection of collections) {
    const known = await findCollection(sql, collection.name)
    // Tables without rows are made again by the other key.
    if (known && (await isWithoutRows(sql, collection.name))) continue
    try {
      await assertPossible(sql, collection)
    } catch (error) {
      if (!(error instanceof JobError)) throw error
      messages.push(error.message)
    }
  }
  return messages
}

async function assertNamesFree(sql: Pick<Sql, 'rows'>, name: string): Promise<void> {
  const [found] = await sql.rows<{ name: string }>(
    `
      SELECT relname AS name
      FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace AND relname = ANY ($1)
      LIMIT 1
    `,
    [namesOfRelations(name)],
  )
  if (!found) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror cannot make the tables of ${name}, since its schema has something called ${found.name} already: give the ` +
      'collection another name (and the address as its path), or rename what is in the way',
  )
}

/** Whether a collection has neither rows nor superseded versions. */
export async function isWithoutRows(sql: Pick<Sql, 'rows'>, name: string): Promise<boolean> {
  const some = KINDS.map((kind) => `EXISTS (SELECT 1 FROM ${quoted(tableName(name, kind))})`)
  const [row] = await sql.rows<{ some: boolean }>(`SELECT ${some.join(' OR ')} AS some`)
  return row?.some !== true
}

/** Its open walks know their items by the other key, so they cannot be resumed. */
async function dropForOtherKey(sql: Sql, name: string): Promise<void> {
  await dropTables(sql, name)
  await sql.rows(
    "UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = $1 AND status = 'open'",
    [name],
  )
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export async function dropTables(sql: Sql, name: string): Promise<void> {
  for (const view of (await loadViews(sql, name)).values())
    await sql.exec(`DROP VIEW IF EXISTS ${quoted(view.name)}`)
  await sql.rows('DELETE FROM sync_view_columns WHERE starts_with(view, $1)', [`${name}__`])
  await sql.exec(`DROP VIEW IF EXISTS ${quoted(changesViewName(name))}`)
  for (const kind of KINDS) await sql.exec(`DROP TABLE IF EXISTS ${quoted(tableName(name, kind))}`)
  await sql.rows('DELETE FROM sync_known_columns WHERE collection = $1', [name])
  await sql.rows('DELETE FROM sync_collections WHERE name = $1', [name])
}
