import type { CollectionSummary, ColumnSummary } from '../../core/describe.ts'
import type { DaemonRecord } from '../../core/leases.ts'
import { type ColumnTrouble, columnTroubles } from '../../core/overview.ts'
import type { Listed, Selection, SentItem, TypedRows } from '../../core/reading.ts'
import { gateClosedUntil, type StatusRow } from '../../core/status.ts'
import { runRule } from '../driver.ts'
import { openForReading, translate, translatingErrors } from '../file/open.ts'
import { readDaemons } from '../leases.ts'
import type { Connection } from '../sql.ts'
import { describeColumns, summarize } from './describe.ts'
import { readFreshness } from './freshness.ts'
import { collectionsOf, findListed, hasTable, listedNames } from './listed.ts'
import { type Parameters, readOnly, stepping } from './query.ts'
import { selectItems, selectRows } from './selection.ts'
import { readStatus } from './status.ts'

/** Read-only access to a mirror or a copy of it, for status, query, export and describe. */
export interface Reader {
  status(): StatusRow[]
  daemons(): DaemonRecord[]
  /** The latest end of a budget's pause. */
  gateClosedUntil(): string | null
  /** None of a copy, and of a mirror of an older version. */
  columnTroubles(): ColumnTrouble[]
  /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
  query(sql: string, parameters?: Parameters): TypedRows
  collections(): string[]
  organizations(): { id: string; name: string }[]
  /** The table or view of a collection with this name. */
  find(name: string): Listed | null
  /** The names of all tables and views of collections. */
  names(): string[]
  /** Throws UsageError if nothing in it says what `since` asks for. */
  rows(listed: Listed, selection: Selection): TypedRows
  /** The items of a collection as they were sent. */
  items(collection: string, selection: Selection): Iterable<SentItem>
  summary(collection: string): CollectionSummary
  describe(listed: Listed): ColumnSummary[]
  close(): void
}

/**
 * Opens the mirror for reading; null if there is none yet. `isCopy`: the user named this file, and it may be
 * of an older version. Throws MirrorError.
 */
export function openReader(file: string, isCopy = false): Reader | null {
  const connection = openForReading(file, isCopy)
  return connection && createReader(connection, file)
}

/**
 * Reads on a connection that this process has open, as it must: opening the file once more and closing it would drop SQLite's
 * locks. `own`: the name of this process's lock file.
 */
export function createReader(connection: Connection, file: string, own: string | null = null): Reader {
  const read = <T>(task: () => T): T => translatingErrors(file, task)
  const meaning = (error: unknown) => translate(file, error)
  const isWhole = () => hasTable(connection, 'sync_jobs') && hasTable(connection, 'sync_gates')
  return {
    status: () => read(() => (isWhole() ? readStatus(connection, file, own) : readFreshness(connection))),
    daemons: () => read(() => (isWhole() ? readDaemons(connection, file, own) : [])),
    gateClosedUntil: () => read(() => (isWhole() ? runRule(connection, gateClosedUntil()) : null)),
    columnTroubles: () =>
      read(() => (tellsOfColumns(connection) ? runRule(connection, columnTroubles()) : [])),
    query: (sql, parameters = new Map()) => readOnly(connection, file, sql, parameters),
    collections: () => read(() => collectionsOf(connection)),
    organizations: () => {
      const sql = 'SELECT id, name FROM organizations ORDER BY configured DESC, name, id'
      return read(() => connection.prepare(sql).all() as { id: string; name: string }[])
    },
    find: (name) => read(() => findListed(connection, name)),
    names: () => read(() => listedNames(connection)),
    rows: (listed, selection) => {
      const { rows, ...head } = read(() => selectRows(connection, listed, selection))
      return { ...head, rows: stepping(() => rows, meaning) }
    },
    items: (collection, selection) => {
      const raw = read(() => findListed(connection, `${collection}_raw`))
      const items = raw ? read(() => selectItems(connection, raw, selection)) : []
      return stepping(() => items, meaning)
    },
    summary: (collection) => read(() => summarize(connection, collection)),
    describe: (listed) => read(() => describeColumns(connection, listed)),
    close: () => connection.close(),
  }
}

/** Not a copy, nor a mirror that no command of this version has written yet. */
function tellsOfColumns(connection: Connection): boolean {
  const sql = "SELECT 1 FROM pragma_table_info('sync_view_columns') WHERE name = 'role'"
  return hasTable(connection, 'sync_column_counts') && connection.prepare(sql).get() !== undefined
}
