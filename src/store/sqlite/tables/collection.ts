import type { JsonObject } from '../../../json/value.ts'
import type { KeyPart } from '../../../sync/items.ts'
import type { Notice } from '../../../sync/types.ts'
import { fitsKeys, keyTypesOf, shapeOf, type TableShape } from '../../columns/catalog.ts'
import { extendCatalog, noticesOf } from '../../columns/extend.ts'
import { type TypedRow, toRow } from '../../columns/row.ts'
import { createRowWriter, type RowWriter } from '../../core/rows.ts'
import { KINDS, tableName } from '../../core/sql.ts'
import { type ConfiguredCollection, loadCatalog } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'
import type { Outcome } from './alter.ts'
import { openArrayViews } from './array-views.ts'
import { ensureTables } from './configured.ts'
import { dropFormerCopy } from './rebuild-table.ts'

/** The open tables of one collection. Everything here runs inside the caller's transaction. */
export interface CollectionTables extends RowWriter {
  shape: TableShape
  /** What to report once they are open. */
  warnings: readonly Notice[]
  /** The typed rows of the items that have to be written, with these keys. */
  toRows(keys: readonly (readonly KeyPart[])[], items: readonly JsonObject[]): Outcome<TypedRow[]>
  /** Creates, or extends, the views of the arrays in these rows. Returns notices for the log. `at`: ISO 8601. */
  extendViews(rows: readonly TypedRow[], at: string): Notice[]
}

export function openCollection(connection: Connection, collection: ConfiguredCollection): CollectionTables {
  const { name } = collection
  const hasChangesView = ensureTables(connection, collection)
  let catalog = runRule(connection, loadCatalog(SQLITE, collection))
  const shape = shapeOf(name, catalog)
  for (const kind of KINDS) dropFormerCopy(connection, tableName(name, kind))
  const extendArrayViews = openArrayViews(connection, shape)
  const keyTypes = keyTypesOf(catalog)
  const message = `the name ${name}_changes is taken, so there is no view of changes`
  const taken: Notice[] = hasChangesView ? [] : [{ level: 'warn', message }]

  return {
    ...createRowWriter(SQLITE, shape),
    shape,
    warnings: taken,
    toRows(keys, items) {
      const known = items.map((item) => toRow(catalog, item))
      if (fitsKeys(keyTypes, keys) && isComplete(known)) return { result: known, notices: [] }
      // Load again: another process may have marked a column as wide, which does not change the schema.
      const stored = runRule(connection, loadCatalog(SQLITE, collection, catalog.isFullReported))
      const extension = extendCatalog(stored, keys, items)
      const { changes } = extension
      const notices = noticesOf(extension)
      if (changes.length > 0) return { changes, notices }
      catalog = extension.catalog
      const rows = items.map((item) => toRow(catalog, item))
      if (isComplete(rows)) return { result: rows, notices }
      throw new Error('items do not fit the columns that were made for them')
    },
    extendViews: (rows, at) =>
      extendArrayViews(
        rows.flatMap(({ arrays }) => arrays),
        at,
      ),
  }
}

function isComplete(rows: readonly (TypedRow | null)[]): rows is TypedRow[] {
  return !rows.includes(null)
}

/** What is known of each collection's tables while the schema stays the same. */
export interface SchemaCache<T> {
  get(collection: string, open: () => T): T
  /** Keeps the entries after this transaction's own changes of the schema. */
  keep(): void
  clear(): void
}

export function createSchemaCache<T>(connection: Connection): SchemaCache<T> {
  // Changes with every table or view, in other processes too. Compiling it takes longer than running it.
  const schemaVersion = connection.prepare('PRAGMA schema_version').pluck()
  const known = new Map<string, T>()
  let version: unknown = null
  const keep = () => {
    version = schemaVersion.get()
  }
  return {
    get(collection, open) {
      if (schemaVersion.get() !== version) known.clear()
      const value = known.get(collection) ?? open()
      known.set(collection, value)
      keep()
      return value
    },
    keep,
    clear: () => known.clear(),
  }
}
