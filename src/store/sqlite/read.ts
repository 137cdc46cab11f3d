import { UsageError } from '../../errors.ts'
import { printable } from '../../text.ts'
import type { IsAlive } from '../core/leases.ts'
import { distinctNames, firstWord, type Rows, type Value } from '../core/query.ts'
import { type ListRow, type MirrorFacts, neverSynced, storedFacts } from '../core/status.ts'
import { type Connection, runRule } from './driver.ts'
import { translate, translatingErrors } from './errors.ts'
import { connect, isCurrentMirror } from './open.ts'

// What `status`, `query` and `export` read of a mirror in a file, or of a copy.

/**
 * What `status`, the listener and pings read of a file, on a connection that this process has open, as it must: opening the file once more and closing
 * it would drop SQLite's locks. Throws MirrorError.
 */
export function readFileFacts(connection: Connection, isAlive: IsAlive, now: number): MirrorFacts {
  const read = connection.transaction((): MirrorFacts => {
    if (isCurrentMirror(connection)) return runRule(connection, storedFacts(isAlive, now))
    // Which process works on a list, what it waits for and what comes next is known to the mirror alone.
    const sql = 'SELECT * FROM sync_status ORDER BY organization, collection'
    const jobs = (connection.prepare(sql).all() as ListRow[]).map((row) => ({
      ...neverSynced({ id: row.organization_id, name: row.organization }, row.collection),
      ...row,
      running: null,
      failing_code: row.failing_since === null ? null : row.error_code,
    }))
    return { jobs, daemons: [], misfits: [], unpublished: null }
  })
  return translatingErrors(connection.name, read)
}

/** The values of `:NAME`, `@NAME` and `$NAME`, by name. */
export type SqlValues = ReadonlyMap<string, string | number | bigint>

/** Throws UsageError for SQL that fails whatever tables a mirror has. For use before there is a mirror. */
export function assertReadingSql(sql: string, parameters: SqlValues): void {
  const connection = connect(':memory:')
  try {
    queryFile(connection, sql, parameters)
  } catch (error) {
    if (!(error instanceof UsageError && /: no such /.test(error.message))) throw error
    // The table that it would write is not there yet, so SQLite says no more of it.
    if (WRITES.includes(firstWord(sql))) throw onlyReads()
  } finally {
    connection.close()
  }
}

const WRITES = ['INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'DROP', 'ALTER', 'CREATE']

function onlyReads(): UsageError {
  return new UsageError('query only reads: write one SELECT (or WITH, EXPLAIN, PRAGMA that reads)')
}

/**
 * Runs one statement that only reads. Throws UsageError for any other, for wrong SQL, and for parameters that
 * do not match those of the statement.
 */
export function queryFile(connection: Connection, sql: string, parameters: SqlValues): Rows {
  const file = connection.name
  try {
    // SQLite would run what stands before it, and leave out the rest.
    if (sql.includes('\0'))
      throw new UsageError('the SQL holds a NUL character; write char(0) for one in a text')
    const statement = connection.prepare(sql)
    if (!statement.reader || !statement.readonly) throw onlyReads()
    bindAll(statement, parameters)
    const found = statement.columns()
    const columns = distinctNames(found.map(({ name }) => name))
    const rows = () => statement.raw().safeIntegers().iterate() as Iterable<Value[]>
    // All rows are one batch, which is read while it is written.
    return { columns, types: found.map(({ type }) => type ?? ''), batches: [stepping(rows, file)] }
  } catch (error) {
    throw wrongSql(error, file)
  }
}

/** By the names of the columns. A query says none of a view's expressions: all but the keys of an array's view. */
export function typesOf(connection: Connection, name: string): Map<string, string> {
  const statement = connection.prepare('SELECT name, type FROM pragma_table_info(?)')
  return new Map(statement.raw().all(name) as [string, string][])
}

/**
 * Translates errors that come after the first row, such as damage, or malformed JSON in a function. Begins
 * with the first row that is read: a connection with an unfinished statement cannot be closed.
 */
function* stepping<T>(begin: () => Iterable<T>, file: string): Iterable<T> {
  try {
    yield* begin()
  } catch (error) {
    throw wrongSql(error, file)
  }
}

/** The library ignores a value that the statement has no parameter for: a proxy notices which ones it asks for. */
function bindAll(statement: ReturnType<Connection['prepare']>, parameters: SqlValues): void {
  const unused = new Set(parameters.keys())
  const get = (values: Record<string, unknown>, name: string) => {
    unused.delete(name)
    return values[name]
  }
  try {
    statement.bind(new Proxy(Object.fromEntries(parameters), { get }))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const [, name = 'NAME'] = /^Missing named parameter "(.*)"$/.exec(error.message) ?? []
    throw new UsageError(
      `the SQL has a parameter without a value; write :NAME for it, and give it with --param ${name}=VALUE`,
    )
  }
  const [first] = unused
  if (first !== undefined) throw new UsageError(`--param ${printable(first)}: the SQL has no such parameter`)
}

const WRONG_SQL = ['SQLITE_ERROR', 'SQLITE_MISMATCH', 'SQLITE_AUTH', 'SQLITE_TOOBIG']

function wrongSql(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof UsageError) return error
  const code = 'code' in error ? error.code : undefined
  // better-sqlite3's own errors, for two statements or none, have no SQLite code.
  if (code !== undefined && !WRONG_SQL.some((wrong) => wrong === code)) return translate(file, error)
  const hint = /^no such (?:column|table)/.test(error.message)
    ? '; the tables sync_columns and sqlite_schema list the names'
    : ''
  return new UsageError(`the SQL cannot be run: ${printable(error.message, 1000)}${hint}`)
}
