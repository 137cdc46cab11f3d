import { UsageError } from '../errors.ts'
import { type Connection, guarded, openForReading, translate } from './database.ts'
import { quoted } from './sql.ts'
import { tableName } from './tables.ts'

/** Whole numbers are bigint, so that none is rounded. */
export type Value = string | number | bigint | null | Uint8Array

export interface Rows {
  columns: string[]
  rows: Iterable<Value[]>
}

/** A line of `status`: `sync_status` and what stands behind it. Times as the mirror writes them. */
export interface StatusRow {
  organization_id: string
  organization: string
  collection: string
  configured: number
  rows: number
  as_of: string | null
  last_complete_at: string | null
  coverage: string | null
  last_run_at: string | null
  last_run_status: string | null
  error_code: string | null
  error_message: string | null
  removals_held: number
  held_since: string | null
  held_reason: string | null
  walk_page: number | null
  walk_pages: number | null
  walk_rows_seen: number | null
  walk_total: number | null
  walk_started_at: string | null
  walk_updated_at: string | null
}

/** The mirror for those who look at it. Nothing is ever written. */
export interface Reader {
  status(): StatusRow[]
  /** The latest time until which a rate gate is closed. */
  gateClosedUntil(): string | null
  /** One statement that only reads. Throws UsageError for any other, and for SQL that is wrong. */
  query(sql: string): Rows
  hasCollection(name: string): boolean
  liveRows(collection: string, organizationIds: readonly string[] | null): Rows
  /** The items as they were sent. */
  liveItems(collection: string, organizationIds: readonly string[] | null): Iterable<string>
  close(): void
}

/** Opens the mirror for reading; null where there is none yet. Throws MirrorError. */
export function openReader(file: string): Reader | null {
  const connection = openForReading(file)
  return connection && createReader(connection, file)
}

function createReader(connection: Connection, file: string): Reader {
  return {
    status: () => guarded(file, () => connection.prepare(STATUS_SQL).all() as StatusRow[]),
    gateClosedUntil: () =>
      guarded(
        file,
        () => connection.prepare('SELECT max(closed_until) FROM sync_gates').pluck().get() as string | null,
      ),
    query: (sql) => readOnly(connection, file, sql),
    hasCollection: (name) =>
      guarded(
        file,
        () => connection.prepare('SELECT 1 FROM sync_collections WHERE name = ?').get(name) !== undefined,
      ),
    liveRows: (collection, organizationIds) => {
      const statement = guarded(file, () =>
        connection.prepare(selectSql(collection, 'typed', '*', organizationIds)),
      )
      const rows = statement
        .raw()
        .safeIntegers()
        .iterate(...(organizationIds ?? []))
      return { columns: statement.columns().map(({ name }) => name), rows: rows as Iterable<Value[]> }
    },
    liveItems: (collection, organizationIds) =>
      guarded(file, () =>
        connection
          .prepare(selectSql(collection, 'raw', '"_json"', organizationIds))
          .pluck()
          .iterate(...(organizationIds ?? [])),
      ) as Iterable<string>,
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

const STATUS_SQL = `
  SELECT
    job.organization_id,
    organizations.name AS organization,
    job.collection,
    job.configured,
    job.rows,
    sync_status.as_of,
    sync_status.last_complete_at,
    sync_status.coverage,
    run.started_at AS last_run_at,
    run.status AS last_run_status,
    run.error_code,
    run.error_message,
    job.removals_held,
    organizations.held_since,
    organizations.held_reason,
    walk.next_page AS walk_page,
    walk.pages AS walk_pages,
    walk.rows_seen AS walk_rows_seen,
    walk.total AS walk_total,
    walk.started_at AS walk_started_at,
    walk.updated_at AS walk_updated_at
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN organizations ON organizations.id = job.organization_id
  LEFT JOIN sync_runs AS run ON run.id = (
    SELECT max(id) FROM sync_runs WHERE organization_id = job.organization_id AND collection = job.collection
  )
  LEFT JOIN sync_walks AS walk ON walk.id = (
    SELECT max(id)
    FROM sync_walks
    WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'open'
  )
  ORDER BY organizations.name, job.collection
`

function readOnly(connection: Connection, file: string, sql: string): Rows {
  try {
    const statement = connection.prepare(sql)
    if (!statement.reader || !statement.readonly)
      throw new UsageError('query only reads: write one SELECT (or WITH, EXPLAIN, PRAGMA that reads)')
    const columns = distinctNames(statement.columns().map(({ name }) => name))
    return { columns, rows: stepping(statement.raw().safeIntegers().iterate() as Iterable<Value[]>, file) }
  } catch (error) {
    throw wrongSql(error, file)
  }
}

/** SQL can also turn out wrong while it runs, as malformed JSON in a function does. */
function* stepping(rows: Iterable<Value[]>, file: string): Iterable<Value[]> {
  try {
    yield* rows
  } catch (error) {
    throw wrongSql(error, file)
  }
}

function wrongSql(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof UsageError) return error
  const code = 'code' in error ? error.code : undefined
  // better-sqlite3 refuses two statements, or none, with errors of its own that carry no code of SQLite's.
  const isOurs =
    code === undefined || code === 'SQLITE_ERROR' || code === 'SQLITE_MISMATCH' || code === 'SQLITE_AUTH'
  return isOurs ? new UsageError(`the SQL cannot be run: ${error.message}`) : translate(file, error)
}

/** `SELECT a.id, b.id` names two columns alike; an object needs them apart. */
function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let candidate = name
    for (let count = 2; taken.has(candidate); count++) candidate = `${name}_${count}`
    taken.add(candidate)
    return candidate
  })
}
