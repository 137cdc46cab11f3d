import type { Job } from '../../../sync/types.ts'
import { type KeyType, keyColumnNames, keyPathsOf } from '../../columns/catalog.ts'
import type { Keys } from '../../core/sql.ts'
import type { Connection } from '../sql.ts'
import { tableName, typeOfColumn } from './declarations.ts'

/**
 * A collection's key columns as its raw table declares them now: one may become TEXT. Null without a table.
 */
export function readKeyColumns(connection: Connection, job: Pick<Job, 'collection'>): Keys | null {
  const table = tableName(job.collection.name, 'raw')
  const keyColumns = keyColumnNames(keyPathsOf(job))
  const keyTypes = keyColumns.map((name) => typeOfColumn(connection, table, name) as KeyType | undefined)
  return keyTypes.every((type) => type !== undefined) ? { keyColumns, keyTypes } : null
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
