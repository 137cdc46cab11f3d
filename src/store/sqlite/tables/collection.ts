import type { JsonObject } from '../../../json/value.ts'
import type { KeyPart } from '../../../sync/items.ts'
import type { Notice } from '../../../sync/types.ts'
import { fitsKeys, type KeyPaths, keyTypesOf, shapeOf } from '../../columns/catalog.ts'
import { extendCatalog, noticesOf } from '../../columns/extend.ts'
import { type TypedRow, toRow } from '../../columns/row.ts'
import type { Connection } from '../sql.ts'
import type { Outcome } from './alter.ts'
import { openArrayViews } from './array-views.ts'
import { ensureChangesView } from './changes-view.ts'
import { loadCatalog } from './column-records.ts'
import { makeTables } from './configured.ts'
import { KINDS, tableName } from './declarations.ts'
import { dropFormerCopy } from './rebuild-table.ts'
import { createRowWriter, type RowWriter } from './rows.ts'

/** The open tables of one collection. Everything here runs inside the caller's transaction. */
export interface CollectionTables extends RowWriter {
  /** What to report once they are open. */
  warnings: readonly Notice[]
  /** The typed rows of the items that have to be written, with these keys. */
  toRows(keys: readonly (readonly KeyPart[])[], items: readonly JsonObject[]): Outcome<TypedRow[]>
  /** Creates, or extends, the views of the arrays in these rows. Returns notices for the log. `at`: ISO 8601. */
  extendViews(rows: readonly TypedRow[], at: string): Notice[]
}

export function openCollection(connection: Connection, name: string, keyPaths: KeyPaths): CollectionTables {
  makeTables(connection, name, keyPaths)
  let catalog = loadCatalog(connection, name, keyPaths)
  const shape = shapeOf(name, catalog)
  for (const kind of KINDS) dropFormerCopy(connection, tableName(name, kind))
  const extendArrayViews = openArrayViews(connection, shape)
  const keyTypes = keyTypesOf(catalog)
  const message = `the name ${name}_changes is taken, so there is no view of changes`
  const taken: Notice[] = ensureChangesView(connection, shape) ? [] : [{ level: 'warn', message }]

  return {
    ...createRowWriter(connection, shape),
    warnings: taken,
    toRows(keys, items) {
      const known = items.map((item) => toRow(catalog, item))
      if (fitsKeys(keyTypes, keys) && isComplete(known)) return { result: known, notices: [] }
      // Load again: another process may have marked a column as wide, which does not change the schema.
      const stored = loadCatalog(connection, name, keyPaths, catalog.isFullReported)
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
