import { JobError } from '../../../errors.ts'
import { type KeyPaths, keyColumnNames, shapeOf, splitKey } from '../../columns/catalog.ts'
import { type Connection, quoted } from '../sql.ts'
import { dropViews } from './array-views.ts'
import { dropChangesView, ensureChangesView } from './changes-view.ts'
import { assertKey, knownKey, loadCatalog, registerKey } from './column-records.ts'
import { createMissingTables, declarationOf, KINDS, namesOfTables, tableName } from './declarations.ts'
import { ensureHelp } from './help-view.ts'

/** A collection of the configuration, its key as dotted paths. */
export interface ConfiguredCollection {
  name: string
  key: readonly string[]
}

/**
 * Creates the tables of every configured collection, so that queries work before the first row. Recreates
 * tables without rows if the key has changed. Call it inside a transaction.
 */
export function makeConfigured(connection: Connection, collections: readonly ConfiguredCollection[]): void {
  ensureHelp(connection)
  for (const { name, key } of collections) {
    const known = knownKey(connection, name)
    const isOtherKey = known !== null && JSON.stringify(known) !== JSON.stringify(key)
    if (isOtherKey && isWithoutRows(connection, name)) dropForOtherKey(connection, name)
    try {
      makeTables(connection, name, splitKey(key))
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/**
 * Creates the missing tables of a collection. Throws JobError for another key, and for names that are taken.
 */
export function makeTables(connection: Connection, name: string, keyPaths: KeyPaths): void {
  if (!assertKey(connection, name, keyPaths)) {
    assertNamesFree(connection, name)
    registerKey(connection, name, keyPaths)
  }
  if (declarationOf(connection, name) === undefined)
    createMissingTables(connection, shapeOf(name, loadCatalog(connection, name, keyPaths)))
  ensureChangesView(connection, { name, keyColumns: keyColumnNames(keyPaths) })
}

/** Throws JobError if the collection has another key in the mirror, or a name of its tables is taken. */
export function assertPossible(connection: Connection, name: string, keyPaths: KeyPaths): void {
  if (!assertKey(connection, name, keyPaths)) assertNamesFree(connection, name)
}

/** Why collections cannot be read into the mirror: each that has rows by another key, or whose tables' names are taken. */
export function impossibleCollections(
  connection: Connection,
  collections: readonly ConfiguredCollection[],
): string[] {
  return collections.flatMap(({ name, key }) => {
    // Tables without rows are made again by the other key.
    if (knownKey(connection, name) !== null && isWithoutRows(connection, name)) return []
    try {
      assertPossible(connection, name, splitKey(key))
      return []
    } catch (error) {
      if (!(error instanceof JobError)) throw error
      return [error.message]
    }
  })
}

function assertNamesFree(connection: Connection, name: string): void {
  const find = connection.prepare('SELECT type, name FROM sqlite_schema WHERE name = ? COLLATE NOCASE')
  for (const wanted of namesOfTables(name)) {
    const found = find.get(wanted) as { type: string; name: string } | undefined
    if (!found) continue
    throw new JobError(
      'CONFIGURATION',
      `the mirror cannot make the tables of ${name}, since it has a ${found.type} ${found.name} already: give the collection ` +
        'another name (and the address as its path), or rename what is in the way',
    )
  }
}

/** Whether a collection has neither rows nor superseded versions. */
export function isWithoutRows(connection: Connection, name: string): boolean {
  return tablesOf(connection, name).every(
    (table) => connection.prepare(`SELECT 1 FROM ${quoted(table)} LIMIT 1`).get() === undefined,
  )
}

/** Whether users have put indexes or triggers on the tables of a collection. */
export function hasBelongings(connection: Connection, name: string): boolean {
  const find = connection.prepare(`
    SELECT name FROM sqlite_schema
    WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = ? COLLATE NOCASE
  `)
  const ours = namesOfTables(name)
  const found = KINDS.flatMap((kind) => find.pluck().all(tableName(name, kind)) as string[])
  return found.some((one) => !ours.includes(one))
}

/** Its open walks know their items by the other key, so they cannot be resumed. */
function dropForOtherKey(connection: Connection, name: string): void {
  dropTables(connection, name)
  connection
    .prepare(`
      UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = ? AND status = 'open'
    `)
    .run(name)
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export function dropTables(connection: Connection, name: string): void {
  dropViews(connection, name)
  dropChangesView(connection, name)
  for (const table of tablesOf(connection, name)) connection.exec(`DROP TABLE ${quoted(table)}`)
  connection.prepare('DELETE FROM sync_known_columns WHERE collection = ?').run(name)
  connection.prepare('DELETE FROM sync_collections WHERE name = ?').run(name)
}

/** The tables of a collection that exist. */
function tablesOf(connection: Connection, name: string): string[] {
  return KINDS.map((kind) => tableName(name, kind)).filter(
    (table) => declarationOf(connection, table) !== undefined,
  )
}
