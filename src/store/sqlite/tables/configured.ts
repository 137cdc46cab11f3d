import { JobError } from '../../../errors.ts'
import { keyColumnNames, keyTypesOf } from '../../columns/catalog.ts'
import type { Connection } from '../file/open.ts'
import { quoted } from '../sql.ts'
import { assertKey, knownKey, loadCatalog, registerKey } from './column-records.ts'
import {
  createMissingTables,
  declarationOf,
  indexHistoryEnds,
  KINDS,
  namesOfTables,
  tableName,
} from './declarations.ts'

type KeyPaths = readonly (readonly string[])[]

/** A collection as the configuration has it: its key as dotted paths. */
export interface ConfiguredCollection {
  name: string
  key: readonly string[]
}

/**
 * Has the tables of every configured collection stand in the mirror, empty until rows come, so that a query never meets
 * a missing one. Tables without rows are made again where the key is another one now. Inside the caller's transaction.
 */
export function makeConfigured(connection: Connection, collections: readonly ConfiguredCollection[]): void {
  for (const { name, key } of collections) {
    const known = knownKey(connection, name)
    const isOtherKey = known !== null && JSON.stringify(known) !== JSON.stringify(key)
    if (isOtherKey && isWithoutRows(connection, name)) dropForOtherKey(connection, name)
    try {
      makeTables(
        connection,
        name,
        key.map((path) => path.split('.')),
      )
    } catch (error) {
      // The run of the job says it, and the other jobs go on.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/** Makes the tables of a collection where they are missing. Throws JobError for another key, and for names that are taken. */
export function makeTables(connection: Connection, name: string, keyPaths: KeyPaths): void {
  if (!assertKey(connection, name, keyPaths)) {
    assertNamesFree(connection, name)
    registerKey(connection, name, keyPaths)
  }
  if (declarationOf(connection, name) !== undefined) {
    indexHistoryEnds(connection, name)
    return
  }
  const keyColumns = keyColumnNames(keyPaths)
  const catalog = loadCatalog(connection, name, keyPaths)
  const columns = catalog.columns.filter(({ role }) => role !== 'key')
  // A key column whose first value is still to come is INTEGER, and becomes TEXT while that costs nothing.
  const keyTypes = keyTypesOf(catalog).map((type) => type ?? 'INTEGER')
  createMissingTables(connection, { name, keyColumns, keyTypes, columns })
}

/** Throws JobError where the mirror keeps the collection by another key, or has something else under a name of its tables. */
export function assertPossible(connection: Connection, name: string, keyPaths: KeyPaths): void {
  if (!assertKey(connection, name, keyPaths)) assertNamesFree(connection, name)
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

/** Whether no row and no superseded version of a collection is there. */
export function isWithoutRows(connection: Connection, name: string): boolean {
  return tablesOf(connection, name).every(
    (table) => connection.prepare(`SELECT 1 FROM ${quoted(table)} LIMIT 1`).get() === undefined,
  )
}

/** An open walk knows its items by the other key, so nobody can go on with it. */
function dropForOtherKey(connection: Connection, name: string): void {
  dropTables(connection, name)
  connection
    .prepare(`
      UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = ? AND status = 'open'
    `)
    .run(name)
}

/** Takes the tables and views of a collection away, and what is known of its columns and its key. */
export function dropTables(connection: Connection, name: string): void {
  // No name of a collection holds two underscores, so these are no other one's views.
  const ofCollection = `substr(view, 1, ${name.length + 2}) = '${name}__'`
  const views = connection
    .prepare(`SELECT DISTINCT view FROM sync_view_columns WHERE ${ofCollection}`)
    .pluck()
  for (const view of views.all() as string[]) connection.exec(`DROP VIEW IF EXISTS ${quoted(view)}`)
  for (const table of tablesOf(connection, name)) connection.exec(`DROP TABLE ${quoted(table)}`)
  connection.exec(`DELETE FROM sync_view_columns WHERE ${ofCollection}`)
  connection.prepare('DELETE FROM sync_columns WHERE collection = ?').run(name)
  connection.prepare('DELETE FROM sync_collections WHERE name = ?').run(name)
}

/** Those that are there. */
function tablesOf(connection: Connection, name: string): string[] {
  return KINDS.map((kind) => tableName(name, kind)).filter(
    (table) => declarationOf(connection, table) !== undefined,
  )
}
