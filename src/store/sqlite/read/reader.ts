import { UsageError } from '../../../errors.ts'
import { type DaemonRecord, readDaemons } from '../daemons.ts'
import { noTemporaryFolder } from '../file/errors.ts'
import { openForReading, openInMemory, translate, translatingErrors } from '../file/open.ts'
import { type Connection, quoted } from '../sql.ts'
import { tableName } from '../tables/declarations.ts'
import { readStatus, type StatusRow } from './status.ts'

/** Whole numbers are bigint: none is rounded. */
export type Value = string | number | bigint | null | Uint8Array

export interface Rows {
  columns: string[]
  rows: Iterable<Value[]>
}

/** Read-only access to the mirror, for status, query and export. */
export interface Reader {
  status(): StatusRow[]
  daemons(): DaemonRecord[]
  /** The latest end of a budget's pause. */
  gateClosedUntil(): string | null
  /** Runs one statement that only reads. Throws UsageError for any other, and for wrong SQL. */
  query(sql: string): Rows
  hasCollection(name: string): boolean
  liveRows(collection: string, organizationIds: readonly string[] | null): Rows
  /** The items as they were sent. */
  liveItems(collection: string, organizationIds: readonly string[] | null): Iterable<string>
  close(): void
}

/** Opens the mirror for reading; null if there is none yet. Throws MirrorError. */
export function openReader(file: string): Reader | null {
  const connection = openForReading(file)
  return connection && createReader(connection, file)
}

/** Throws UsageError for SQL that fails whatever tables a mirror has. For use before there is a mirror. */
export function assertReadingSql(sql: string): void {
  const connection = openInMemory()
  try {
    readOnly(connection, ':memory:', sql)
  } catch (error) {
    const isAboutNames = error instanceof UsageError && /: no such /.test(error.message)
    if (!isAboutNames) throw error
  } finally {
    connection.close()
  }
}

function createReader(connection: Connection, file: string): Reader {
  const read = <T>(task: () => T): T => translatingErrors(file, task)
  const meaning = (error: unknown) => translate(file, error)
  return {
    status: () => read(() => readStatus(connection, file)),
    daemons: () => read(() => readDaemons(connection, file)),
    gateClosedUntil: () => {
      const sql = 'SELECT max(closed_until) FROM sync_gates'
      return read(() => connection.prepare(sql).pluck().get() as string | null)
    },
    query: (sql) => readOnly(connection, file, sql),
    hasCollection: (name) => {
      const sql = 'SELECT 1 FROM sync_collections WHERE name = ?'
      return read(() => connection.prepare(sql).get(name) !== undefined)
    },
    liveRows: (collection, organizationIds) => {
      const sql = selectSql(collection, 'typed', '*', organizationIds)
      const statement = read(() => connection.prepare(sql)).safeIntegers()
      const columns = statement.columns().map(({ name }) => name)
      const rows = () => statement.raw().iterate(...(organizationIds ?? [])) as Iterable<Value[]>
      return { columns, rows: stepping(rows, meaning) }
    },
    liveItems: (collection, organizationIds) => {
      const sql = selectSql(collection, 'raw', '"_json"', organizationIds)
      const statement = read(() => connection.prepare(sql)).pluck()
      const items = () => statement.iterate(...(organizationIds ?? [])) as Iterable<string>
      return stepping(items, meaning)
    },
    close: () => connection.close(),
  }
}

function selectSql(
  collection: string,
  kind: 'typed' | 'raw',
  columns: string,
  organizationIds: readonly string[] | null,
): string {
  const some = `"_organization_id" IN (${(organizationIds ?? []).map(() => '?').join(', ')})`
  return `
    SELECT ${columns}
    FROM ${quoted(tableName(collection, kind))}
    WHERE ${organizationIds ? some : 'true'}
    ORDER BY rowid
  `
}

function readOnly(connection: Connection, file: string, sql: string): Rows {
  try {
    const statement = connection.prepare(sql)
    if (!statement.reader || !statement.readonly)
      throw new UsageError('query only reads: write one SELECT (or WITH, EXPLAIN, PRAGMA that reads)')
    const columns = distinctNames(statement.columns().map(({ name }) => name))
    const rows = () => statement.raw().safeIntegers().iterate() as Iterable<Value[]>
    return { columns, rows: stepping(rows, (error) => wrongSql(error, file)) }
  } catch (error) {
    throw wrongSql(error, file)
  }
}

/**
 * Translates errors that come after the first row, such as damage, or malformed JSON in a function. Begins
 * with the first row that is read: a connection with an unfinished statement cannot be closed.
 */
function* stepping<T>(begin: () => Iterable<T>, meaning: (error: unknown) => unknown): Iterable<T> {
  try {
    yield* begin()
  } catch (error) {
    throw meaning(error)
  }
}

function wrongSql(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof UsageError) return error
  const code = 'code' in error ? error.code : undefined
  // better-sqlite3's own errors, for two statements or none, have no SQLite code.
  const isOfSql = code === undefined || WRONG_SQL.some((wrong) => wrong === code)
  if (isOfSql) return new UsageError(`the SQL cannot be run: ${error.message}`)
  return code === 'SQLITE_IOERR_GETTEMPPATH' ? noTemporaryFolder(file) : translate(file, error)
}

const WRONG_SQL = ['SQLITE_ERROR', 'SQLITE_MISMATCH', 'SQLITE_AUTH', 'SQLITE_TOOBIG']

/** `SELECT a.id, b.id` gives two columns one name; an object needs two. */
function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let candidate = name
    for (let count = 2; taken.has(candidate); count++) candidate = `${name}_${count}`
    taken.add(candidate)
    return candidate
  })
}
