import type { Notice } from '../../../sync/types.ts'
import { noticesOf } from '../../columns/extend.ts'
import {
  fitTables,
  type KnownTables,
  knownTables,
  NOTHING_TOLD,
  planColumns,
  type TableAccess,
  type Told,
} from '../../core/fit.ts'
import { KINDS, tableName } from '../../core/names.ts'
import type { Rule } from '../../core/sql.ts'
import type { ConfiguredCollection } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import { translatingErrors } from '../file/open.ts'
import type { Maintain } from '../maintenance.ts'
import type { Connection } from '../sql.ts'
import type { Transact } from '../transaction.ts'
import { ALTERATION, describePlan, rowsToRead } from './alter.ts'
import { ensureTables } from './configured.ts'
import { dropFormerCopy } from './rebuild-table.ts'

export interface FileTables extends TableAccess {
  /** Returns warnings about tables that were opened since the last call. */
  untold(): Notice[]
}

/** Up to so many rows this process goes through itself: some tenths of a second. */
export const INLINE_ROWS = 20_000

export function createFileTables(
  connection: Connection,
  file: string,
  transact: Transact,
  maintain: Maintain,
): FileTables {
  const known = createSchemaCache<KnownTables>(connection)
  const told = new Map<string, Told>()
  const warnings: Notice[] = []

  function open(collection: ConfiguredCollection, ofIt = told.get(collection.name)): KnownTables {
    const { name } = collection
    return known.get(name, () => {
      if (!runRule(connection, makeTables(collection)))
        warnings.push({
          level: 'warn',
          message: `the name ${name}_changes is taken, so there is no view of changes`,
        })
      return runRule(connection, knownTables(SQLITE, collection, ofIt))
    })
  }

  const read = <T>(rule: Rule<T>) => translatingErrors(file, () => runRule(connection, rule))

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
      const changes = planned.changes.filter(({ kind }) => kind !== 'wide')
      const rows = read(rowsToRead(name, changes))
      if (rows > INLINE_ROWS) {
        const plan = { collection: name, changes, at }
        await maintain('alterTables', plan, { what: describePlan(plan), rows })
      }
      const { fitting, outcome } = await transactTables(() => {
        const fitted = runRule(connection, fitTables(ALTERATION, collection, wanted, before, at))
        known.clear()
        return { fitting: fitted, outcome: runRule(connection, begin(open(collection, fitted.told))) }
      }, 'rebuilding')
      told.set(name, fitting.told)
      return { outcome, notices: [...noticesOf(planned), ...fitting.notices] }
    },
    untold: () => warnings.splice(0),
  }
}

/** Returns false where the name of the view of changes is a user's. */
function* makeTables(collection: ConfiguredCollection): Rule<boolean> {
  const hasChangesView = yield* ensureTables(collection)
  for (const kind of KINDS) yield* dropFormerCopy(tableName(collection.name, kind))
  return hasChangesView
}

/** What is known of each collection's tables while the schema stays the same. */
export interface SchemaCache<T> {
  get(collection: string, open: () => T): T
  clear(): void
}

export function createSchemaCache<T>(connection: Connection): SchemaCache<T> {
  // Changes with every table or view, in other processes too. Compiling it takes longer than running it.
  const schemaVersion = connection.prepare('PRAGMA schema_version').pluck()
  const known = new Map<string, T>()
  let version: unknown = null
  return {
    get(collection, open) {
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
