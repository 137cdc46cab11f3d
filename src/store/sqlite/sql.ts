import type Database from 'better-sqlite3'

export type Connection = Database.Database

/** A name as SQLite reads it, whatever characters it has. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A parameter for statements that run at least once a page. Where no unique index settles the plan, SQLite
 * compiles a statement again for each value bound to a bare `?`, which takes ten times as long as the query.
 * A CAST prevents that.
 */
export function castParameter(type: 'INTEGER' | 'TEXT', parameter = '?'): string {
  return `CAST(${parameter} AS ${type})`
}

/** What is known of each collection's tables while the schema stays the same. */
export interface SchemaCache<T> {
  get(collection: string, open: () => T): T
  /** Keeps the entries after this transaction's own changes of the schema. */
  keep(): void
  clear(): void
}

export function createSchemaCache<T>(connection: Connection): SchemaCache<T> {
  // Changes with every table or view, in other processes too. Compiling it takes longer than running it.
  const schemaVersion = connection.prepare('PRAGMA schema_version').pluck()
  const known = new Map<string, T>()
  let version: unknown = null
  const keep = () => {
    version = schemaVersion.get()
  }
  return {
    get(collection, open) {
      if (schemaVersion.get() !== version) known.clear()
      const value = known.get(collection) ?? open()
      known.set(collection, value)
      keep()
      return value
    },
    keep,
    clear: () => known.clear(),
  }
}
