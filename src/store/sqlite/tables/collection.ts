import { JobError } from '../../../errors.ts'
import { extensionNotices } from '../../columns/extend.ts'
import { ensureTables } from '../../core/collections.ts'
import {
  fitTables,
  type KnownTables,
  knownTables,
  NOTHING_TOLD,
  planColumns,
  type TableAccess,
  type Told,
} from '../../core/fit.ts'
import type { Rule } from '../../core/sql.ts'
import type { ConfiguredCollection } from '../../core/tables.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import { translatingErrors } from '../file/open.ts'
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
  const told = new Map<string, Told>()

  function open(collection: ConfiguredCollection, ofIt = told.get(collection.name)): KnownTables {
    const { name } = collection
    return known.get(name, () => {
      runRule(connection, ensureTables(ALTERATION, collection))
      return runRule(connection, knownTables(SQLITE, collection, ofIt))
    })
  }

  const read = <T>(rule: Rule<T>) => translatingErrors(connection.name, () => runRule(connection, rule))

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
    async withFittedTables(collection, wanted, at, begin) {
      const { name } = collection
      const before = told.get(name) ?? NOTHING_TOLD
      const planned = read(planColumns(SQLITE, collection, wanted, before))
      const { fitting, outcome } = await transactTables(() => {
        const fitted = runRule(connection, fitTables(ALTERATION, collection, wanted, before, at))
        known.clear()
        return { fitting: fitted, outcome: runRule(connection, begin(open(collection, fitted.told))) }
      }, 'rebuilding')
      told.set(name, fitting.told)
      return { outcome, notices: [...extensionNotices(planned), ...fitting.notices] }
    },
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
