import { TABLE_KINDS, tableName } from '../columns/catalog.ts'
import { one, quoted, type Rule } from '../core/sql.ts'
import { knownCollections } from '../core/tables.ts'
import { type Connection, runRule } from './driver.ts'

// Statistics for SQLite's planner, of the tables that people query. Without them it assumes that each organization has ten rows, and reads all
// orders of one again for each of its establishments.

/**
 * How many rows of each index are read. With fewer, the planner assumes that a large organization has only that many; without a limit, SQLite
 * keeps values of the API in `sqlite_stat4`.
 */
export const ANALYZED_ROWS = 100_000

/**
 * A table with fewer rows gets no statistics: with those of one or two rows the planner reads the whole table instead of its index, in our own
 * statements too, and keeps doing so while thousands of rows come.
 */
const LEAST_ROWS = 10

/** The tables without statistics, and those that had a tenth of their rows, or ten times as many, when these were made. */
export function tablesToAnalyze(connection: Connection): string[] {
  // 0x02: tables that have changed much, 0x10000: look at all tables, 0x01: only list them.
  const due = connection.pragma('optimize = 0x10003') as { optimize: string }[]
  const isDue = new Set(due.map(({ optimize }) => optimize))
  return runRule(connection, knownCollections())
    .flatMap(({ name }) => TABLE_KINDS.map((kind) => tableName(name, kind)))
    .filter((table) => isDue.has(`ANALYZE "main".${quoted(table)}`))
    .filter((table) => runRule(connection, rowsIn(table)) >= LEAST_ROWS)
}

/** Needs no other process: a history of a million rows takes 0.2 s, other tables less. */
export function analyzeTable(connection: Connection, table: string): void {
  connection.pragma(`analysis_limit = ${ANALYZED_ROWS}`)
  connection.exec(`ANALYZE main.${quoted(table)}`)
}

/** About how many rows a table has. */
function* rowsIn(table: string): Rule<number> {
  const row = yield* one<{ rows: number | null }>(`SELECT max(_rowid_) AS rows FROM ${quoted(table)}`)
  return row?.rows ?? 0
}
