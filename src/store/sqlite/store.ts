import type { Store } from '../../sync/store.ts'
import { TABLE_KINDS, tableName } from '../columns/catalog.ts'
import { acquiring } from '../core/acquire.ts'
import type { Leases } from '../core/leases.ts'
import { all, exec, one, quoted, type Rule } from '../core/sql.ts'
import { createStore } from '../core/store.ts'
import { knownCollections } from '../core/tables.ts'
import type { Connection } from './driver.ts'
import { type Patience, runnerOn, type Transact } from './transaction.ts'

export interface SqliteStoreOptions extends Patience {
  connection: Connection
  transact: Transact
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  leases: Leases
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The store on one SQLite file. */
export function openSqliteStore(options: SqliteStoreOptions): Store {
  const { connection, transact, baseUrl, leases, keepRuns, signal } = options
  const runner = runnerOn(connection, transact, options)
  const store = createStore({ runner, keepRuns, isOfOtherTables: () => false })
  return {
    ...store,
    ...acquiring(runner, leases, baseUrl),
    async prune(job) {
      await store.prune(job)
      for (const table of await transact(tablesToAnalyze))
        if (!signal.aborted) await transact(() => analyzeTable(table))
    },
  }
}

/**
 * How many rows of each index are read for the statistics by which people's queries are planned: without them the planner assumes that each
 * organization has ten rows. With fewer, it assumes that a large one has only that many; without a limit, SQLite keeps values of the API in `sqlite_stat4`.
 */
export const ANALYZED_ROWS = 100_000

/**
 * A table with fewer rows gets no statistics: with those of one or two rows the planner reads the whole table instead of its index, in our own
 * statements too, and keeps doing so while thousands of rows come.
 */
const LEAST_ROWS = 10

/** The tables that people query without statistics, and those that had a tenth of their rows, or ten times as many, when these were made. */
function* tablesToAnalyze(): Rule<string[]> {
  // 0x02: tables that have changed much, 0x10000: look at all tables, 0x01: only list them.
  const due = yield* all<{ optimize: string }>('PRAGMA optimize = 0x10003')
  const isDue = new Set(due.map(({ optimize }) => optimize))
  const tables: string[] = []
  for (const { name } of yield* knownCollections())
    for (const kind of TABLE_KINDS) {
      const table = tableName(name, kind)
      if (isDue.has(`ANALYZE "main".${quoted(table)}`) && (yield* rowsIn(table)) >= LEAST_ROWS)
        tables.push(table)
    }
  return tables
}

/** A history of a million rows takes 0.2 s, other tables less. */
function analyzeTable(table: string): Rule<void> {
  return exec([`PRAGMA analysis_limit = ${ANALYZED_ROWS}`, `ANALYZE main.${quoted(table)}`])
}

/** About how many rows a table has. */
function* rowsIn(table: string): Rule<number> {
  const row = yield* one<{ rows: number | null }>(`SELECT max(_rowid_) AS rows FROM ${quoted(table)}`)
  return row?.rows ?? 0
}
