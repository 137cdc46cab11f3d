import { JobError } from '../../../errors.ts'
import { ensureTables } from '../../core/collections.ts'
import { fitTables, type KnownTables, knownTables, type TableAccess } from '../../core/fit.ts'
import type { ConfiguredCollection } from '../../core/tables.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import type { Transact } from '../transaction.ts'
import { ALTERATION } from './alter.ts'

/**
 * Creates the tables of every configured collection, so that queries work before the first row. Recreates
 * tables without rows if the key has changed. Call it inside a transaction.
 */
export function makeConfigured(connection: Connection, collections: readonly ConfiguredCollection[]): void {
  for (const collection of collections) {
    try {
      runRule(connection, ensureTables(ALTERATION, collection))
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

export function createFileTables(connection: Connection, transact: Transact): TableAccess {
  const known = createSchemaCache<KnownTables>(connection)

  function open(collection: ConfiguredCollection): KnownTables {
    return known.get(collection.name, () => {
      runRule(connection, ensureTables(ALTERATION, collection))
      return runRule(connection, knownTables(SQLITE, collection))
    })
  }

  /** A rollback undoes the tables and columns that its transaction has made. */
  const transactTables: Transact = async (task, kind) => {
    try {
      return await transact(task, kind)
    } catch (error) {
      known.clear()
      throw error
    }
  }

  return {
    withTables: (collection, begin) => transactTables(() => runRule(connection, begin(open(collection)))),
    withFittedTables: (collection, wanted, at, begin) =>
      transactTables(() => {
        const notices = runRule(connection, fitTables(ALTERATION, collection, wanted, at))
        known.clear()
        return { notices, outcome: runRule(connection, begin(open(collection))) }
      }, 'rebuilding'),
  }
}

/** What is known of each collection's tables while the schema stays the same. */
export function createSchemaCache<T>(connection: Connection) {
  // Changes with every table or view, in other processes too. Compiling it takes longer than running it.
  const schemaVersion = connection.prepare('PRAGMA schema_version').pluck()
  const known = new Map<string, T>()
  let version: unknown = null
  return {
    get(collection: string, open: () => T): T {
      if (schemaVersion.get() !== version) known.clear()
      const value = known.get(collection) ?? open()
      known.set(collection, value)
      // Opening may have changed it.
      version = schemaVersion.get()
      return value
    },
    clear: () => known.clear(),
  }
}
