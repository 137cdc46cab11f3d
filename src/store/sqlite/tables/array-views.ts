import { isJsonObject } from '../../../json/value.ts'
import type { Notice } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import { columnType } from '../../columns/column.ts'
import { discoverElements, type ElementColumn } from '../../columns/elements.ts'
import type { ArrayValue } from '../../columns/row.ts'
import { type Connection, quoted } from '../sql.ts'
import { belongingsOf } from './rebuild-table.ts'
import { isViewSql, viewSql } from './view.ts'

/** The view of an array of objects: `orders__items`. */
export interface ArrayView {
  name: string
  arrayColumn: string
  elements: readonly ElementColumn[]
}

/**
 * Returns a function that creates the views of a collection for these arrays, or recreates them with further
 * columns, and returns notices for the log.
 */
export function openArrayViews(
  connection: Connection,
  shape: TableShape,
): (arrays: readonly ArrayValue[]) => Notice[] {
  const views = loadViews(connection, shape.name)
  const strangers = new Set<string>()
  const saveElement = connection.prepare(`
    INSERT INTO sync_view_columns (view, array_column, "column", path, type, holds)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (view, "column") DO UPDATE SET type = excluded.type, holds = excluded.holds
  `)

  function save(view: ArrayView): void {
    views.set(view.name, view)
    for (const { name, path, type, holds } of view.elements)
      saveElement.run(view.name, view.arrayColumn, name, path, type, holds)
    replaceView(connection, shape, view)
  }

  return (arrays) => {
    const notices: Notice[] = []
    for (const { column, array } of arrays) {
      if (!array.some(isJsonObject)) continue
      const name = `${shape.name}__${column}`
      const known = views.get(name)?.elements ?? []
      const elements = discoverElements(known, array)
      if (elements === known || strangers.has(name)) continue
      if (isTaken(connection, name)) {
        strangers.add(name)
        const message = `the name ${name} is taken, so there is no view of that array`
        notices.push({ level: 'warn', message })
      } else save({ name, arrayColumn: column, elements })
    }
    return notices
  }
}

/** No collection's name has two underscores, so these views belong to no other one. */
const OF_COLLECTION = `substr(view, 1, length(:collection) + 2) = :collection || '__'`

/** The views of a collection, by name. */
export function loadViews(connection: Connection, collection: string): Map<string, ArrayView> {
  type Row = ElementColumn & { view: string; array_column: string }
  const rows = connection
    .prepare(`
      SELECT view, array_column, "column" AS name, path, type, holds
      FROM sync_view_columns
      WHERE ${OF_COLLECTION}
      ORDER BY rowid
    `)
    .all({ collection }) as Row[]
  const views = new Map<string, ArrayView>()
  for (const { view, array_column: arrayColumn, ...row } of rows) {
    const element = { ...row, type: columnType(row.type) }
    views.set(view, { name: view, arrayColumn, elements: [...(views.get(view)?.elements ?? []), element] })
  }
  return views
}

/** A table or view that we did not create belongs to a user, who may have put it in the place of ours. */
export function isTaken(connection: Connection, name: string): boolean {
  const find = connection.prepare('SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE')
  const found = find.get(name) as { type: string; sql: string | null } | undefined
  return found !== undefined && !(found.type === 'view' && isViewSql(found.sql ?? '', name))
}

/** Drops the views of a collection, and deletes their columns. */
export function dropViews(connection: Connection, collection: string): void {
  for (const view of loadViews(connection, collection).keys())
    if (!isTaken(connection, view)) connection.exec(`DROP VIEW IF EXISTS ${quoted(view)}`)
  connection.prepare(`DELETE FROM sync_view_columns WHERE ${OF_COLLECTION}`).run({ collection })
}

export function replaceView(
  connection: Connection,
  { name: table, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
  { name: view, arrayColumn, elements }: ArrayView,
): void {
  // A user's INSTEAD OF trigger would go with the view.
  const triggers = belongingsOf(connection, view)
  connection.exec(`DROP VIEW IF EXISTS ${quoted(view)}`)
  connection.exec(viewSql({ view, table, keyColumns, arrayColumn, elements }))
  for (const sql of triggers) connection.exec(sql)
}
