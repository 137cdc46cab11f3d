import { UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { distinctNames, type TypedRows, type Value } from '../../core/reading.ts'
import type { Rule } from '../../core/sql.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import { translate } from '../file/errors.ts'
import { openInMemory } from '../file/open.ts'

/** Read-only access to the rows of a mirror or a copy of it, for `query` and `export`. */
export function createReader(connection: Connection, file: string) {
  return {
    dialect: SQLITE,
    /** Throws UsageError for a view that a user has made over what is no longer there. */
    ask<T>(rule: Rule<T>): T {
      try {
        return runRule(connection, rule)
      } catch (error) {
        throw wrongSql(error, file)
      }
    },
    /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
    query: (sql: string, parameters: Parameters = new Map()) => readOnly(connection, file, sql, parameters),
  }
}

/** The values of `:NAME`, `@NAME` and `$NAME`, by name. */
export type Parameters = ReadonlyMap<string, string | number | bigint>

/** Throws UsageError for SQL that fails whatever tables a mirror has. For use before there is a mirror. */
export function assertReadingSql(sql: string, parameters: Parameters): void {
  const connection = openInMemory()
  try {
    readOnly(connection, ':memory:', sql, parameters)
  } catch (error) {
    const isAboutNames = error instanceof UsageError && /: no such /.test(error.message)
    if (!isAboutNames) throw error
    if (WRITES.test(sql)) throw onlyReads()
  } finally {
    connection.close()
  }
}

/**
 * Runs one statement that only reads. Throws UsageError for any other, for wrong SQL, and for parameters that
 * do not match those of the statement.
 */
function readOnly(connection: Connection, file: string, sql: string, parameters: Parameters): TypedRows {
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
    return { columns, types: found.map(({ type }) => type ?? ''), rows: stepping(rows, file) }
  } catch (error) {
    throw wrongSql(error, file)
  }
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

function onlyReads(): UsageError {
  return new UsageError('query only reads: write one SELECT (or WITH, EXPLAIN, PRAGMA that reads)')
}

/** Behind comments, a word that begins a statement that writes. */
const WRITES =
  /^(?:\s|--.*\n|\/\*(?:(?!\*\/)[\s\S])*\*\/)*(?:INSERT|UPDATE|DELETE|REPLACE|DROP|ALTER|CREATE)\b/i

/** The library ignores a value that the statement has no parameter for: a proxy notices which ones it asks for. */
function bindAll(statement: ReturnType<Connection['prepare']>, parameters: Parameters): void {
  const unused = new Set(parameters.keys())
  const get = (values: Record<string, unknown>, name: string) => {
    unused.delete(name)
    return values[name]
  }
  try {
    statement.bind(new Proxy(Object.fromEntries(parameters), { get }))
  } catch (error) {
    throw error instanceof RangeError ? missing(error) : error
  }
  const [first] = unused
  if (first !== undefined) throw new UsageError(`--param ${printable(first)}: the SQL has no such parameter`)
}

function missing({ message }: RangeError): UsageError {
  const [, name] = /^Missing named parameter "(.*)"$/.exec(message) ?? []
  return new UsageError(
    name === undefined
      ? 'the SQL has parameters without a name; write :NAME, and give its value with --param NAME=VALUE'
      : `the SQL has the parameter ${name}; give its value with --param ${name}=VALUE`,
  )
}

function wrongSql(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof UsageError) return error
  const code = 'code' in error ? error.code : undefined
  // better-sqlite3's own errors, for two statements or none, have no SQLite code.
  const isOfSql = code === undefined || WRONG_SQL.some((wrong) => wrong === code)
  if (isOfSql)
    return new UsageError(`the SQL cannot be run: ${printable(error.message, 1000)}${hintFor(error)}`)
  return translate(file, error)
}

function hintFor({ message }: Error): string {
  return /^no such (?:column|table)/.test(message)
    ? '; the tables sync_columns and sqlite_schema list the names'
    : ''
}

const WRONG_SQL = ['SQLITE_ERROR', 'SQLITE_MISMATCH', 'SQLITE_AUTH', 'SQLITE_TOOBIG']
