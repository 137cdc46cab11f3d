import type { CollectionSummary, ColumnSummary } from '../../core/describe.ts'
import type { Listed, Selection, SentItem, TypedRows } from '../../core/reading.ts'
import { translate, translatingErrors } from '../file/open.ts'
import type { Connection } from '../sql.ts'
import { collectionsOf, findListed, listedNames } from './listed.ts'
import { type Parameters, readOnly, stepping } from './query.ts'
import { selectItems, selectRows } from './selection.ts'

/** Read-only access to the rows of a mirror or a copy of it, for query, export and describe. */
export interface Reader {
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
  summary(collection: string): Promise<CollectionSummary>
  describe(listed: Listed): Promise<ColumnSummary[]>
  close(): void
}

export function createReader(connection: Connection, file: string): Reader {
  const read = <T>(task: () => T): T => translatingErrors(file, task)
  const meaning = (error: unknown) => translate(file, error)
  return {
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
    // Loaded by none but `describe`, so that a query starts fast.
    async summary(collection) {
      const { summarize } = await import('./describe.ts')
      return read(() => summarize(connection, collection))
    },
    async describe(listed) {
      const { describeColumns } = await import('./describe.ts')
      return read(() => describeColumns(connection, listed))
    },
    close: () => connection.close(),
  }
}
