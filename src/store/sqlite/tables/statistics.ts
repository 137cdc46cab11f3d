import { KINDS, tableName } from '../../core/names.ts'
import { type Connection, quoted } from '../sql.ts'

// What SQLite's planner knows of the tables that people query. Without it, it takes each organization for one of ten rows, and goes
// through all orders of one for each establishment.

/**
 * Rows of each index that are read. With fewer, the planner takes a large organization for one of so many rows; without a limit,
 * values of the API are kept in `sqlite_stat4`.
 */
export const ANALYZED_ROWS = 100_000

/**
 * A table with fewer rows has none: with those of one or two rows the planner reads the whole table rather than its index, also in our own
 * statements, and goes on so while thousands of rows come.
 */
const LEAST_ROWS = 10

/** The tables whose statistics are missing, or of a time when they had a tenth of their rows, or ten times as many. */
export function tablesToAnalyze(connection: Connection): string[] {
  const names = connection
    .prepare('SELECT name FROM sync_collections ORDER BY name')
    .pluck()
    .all() as string[]
  // 0x02: what has changed much, 0x10000: of all tables, 0x01: only says so.
  const due = connection.pragma('optimize = 0x10003') as { optimize: string }[]
  const isDue = new Set(due.map(({ optimize }) => optimize))
  return names
    .flatMap((name) => KINDS.map((kind) => tableName(name, kind)))
    .filter(
      (table) => isDue.has(`ANALYZE "main".${quoted(table)}`) && rowsIn(connection, [table]) >= LEAST_ROWS,
    )
}

/** Call it inside a transaction. */
export function analyzeTables(connection: Connection, { tables }: { tables: readonly string[] }): void {
  connection.pragma(`analysis_limit = ${ANALYZED_ROWS}`)
  for (const table of tables) connection.exec(`ANALYZE main.${quoted(table)}`)
}

/** About how many rows they have. */
export function rowsIn(connection: Connection, tables: readonly string[]): number {
  const counts = tables.map((table) =>
    Number(
      connection
        .prepare(`SELECT max(_rowid_) FROM ${quoted(table)}`)
        .pluck()
        .get() ?? 0,
    ),
  )
  return counts.reduce((sum, rows) => sum + rows, 0)
}
