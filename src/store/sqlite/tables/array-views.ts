import { isJsonObject } from '../../../json/value.ts'
import type { Notice } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import { type ArrayView, extendElements, sentAtOf } from '../../columns/elements.ts'
import type { ArrayValue } from '../../columns/row.ts'
import { run } from '../../core/sql.ts'
import { loadArrayViews, loadColumns, OF_VIEWS } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import { type Connection, quoted } from '../sql.ts'
import { belongingsOf } from './rebuild-table.ts'
import { isViewSql, joinRaw, kindSql, viewSql } from './view.ts'

/**
 * Returns a function that creates the views of a collection for these arrays, or recreates them with further
 * columns, and returns notices for the log. `at`: ISO 8601.
 */
export function openArrayViews(
  connection: Connection,
  shape: TableShape,
): (arrays: readonly ArrayValue[], at: string) => Notice[] {
  const views = loadViews(connection, shape.name)
  const strangers = new Set<string>()
  const saveElement = connection.prepare(`
    INSERT INTO sync_view_columns (view, array_column, "column", path, type, role, wide, first_seen_at, last_changed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (view, "column")
    DO UPDATE SET
      last_changed_at = CASE WHEN type = excluded.type THEN last_changed_at ELSE excluded.last_changed_at END,
      type = excluded.type,
      wide = excluded.wide
  `)

  function save(view: ArrayView, at: string): void {
    views.set(view.name, view)
    for (const { name, path, type, role, wide } of view.elements)
      saveElement.run(view.name, view.arrayColumn, name, path, type, role, wide ? 1 : 0, at, at)
    replaceView(connection, shape, view)
  }

  /** Read again: another process may have marked the column, which does not change the schema. */
  function sentAt(arrayColumn: string): string | null {
    const columns = runRule(connection, loadColumns(SQLITE, shape.name))
    const column = columns.find(({ name }) => name === arrayColumn)
    return column ? sentAtOf(column) : null
  }

  return (arrays, at) => {
    const notices: Notice[] = []
    for (const { column, array } of arrays) {
      if (!array.some(isJsonObject)) continue
      const name = `${shape.name}__${column}`
      if (strangers.has(name)) continue
      const extended = extendElements(views.get(name)?.elements ?? [], array)
      if (!extended) continue
      if (isTaken(connection, name)) {
        strangers.add(name)
        const message = `the name ${name} is taken, so there is no view of that array`
        notices.push({ level: 'warn', message })
        continue
      }
      save({ name, arrayColumn: column, elements: extended.elements, sentAt: sentAt(column) }, at)
      for (const { message } of extended.warnings)
        notices.push({ level: 'warn', message: `${name}: ${message}` })
    }
    return notices
  }
}

/** The views of a collection, by name. */
export function loadViews(connection: Connection, collection: string): Map<string, ArrayView> {
  const views = runRule(connection, loadArrayViews(SQLITE, collection))
  return new Map(views.map((view) => [view.name, view]))
}

/** A table or view that we did not create belongs to a user, who may have put it in the place of ours. */
function isTaken(connection: Connection, name: string): boolean {
  const find = connection.prepare('SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE')
  const found = find.get(name) as { type: string; sql: string | null } | undefined
  return found !== undefined && !(found.type === 'view' && isViewSql(found.sql ?? '', name))
}

/** Drops the views of a collection, and deletes their columns. */
export function dropViews(connection: Connection, collection: string): void {
  for (const view of loadViews(connection, collection).keys())
    if (!isTaken(connection, view)) connection.exec(`DROP VIEW IF EXISTS ${quoted(view)}`)
  runRule(connection, run(`DELETE FROM sync_view_columns WHERE ${OF_VIEWS}`, { collection }))
}

function replaceView(
  connection: Connection,
  { name: table, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
  view: ArrayView,
): void {
  // A user's INSTEAD OF trigger would go with the view.
  const triggers = belongingsOf(connection, view.name)
  connection.exec(`DROP VIEW IF EXISTS ${quoted(view.name)}`)
  connection.exec(viewSql(view, { table, keyColumns }))
  for (const sql of triggers) connection.exec(sql)
}

/** Replaces those views of a collection that are ours, or those of some columns. Returns how many. */
export function replaceViews(
  connection: Connection,
  shape: Pick<TableShape, 'name' | 'keyColumns'>,
  arrayColumns?: readonly string[],
): number {
  const views = [...loadViews(connection, shape.name).values()].filter(
    ({ name, arrayColumn }) => (arrayColumns?.includes(arrayColumn) ?? true) && !isTaken(connection, name),
  )
  for (const view of views) replaceView(connection, shape, view)
  return views.length
}

/** A condition: the column holds a text that begins like a list. */
function readsLikeList({ name }: Column): string {
  return `ltrim(t.${quoted(name)}, char(32, 9, 10, 13)) GLOB '[[]*'`
}

/** Marks the columns of a mirror of an earlier version that hold texts that read like lists. */
export function markWideTexts(
  connection: Connection,
  { name, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
): void {
  const texts = runRule(connection, loadColumns(SQLITE, name)).filter(
    ({ role, type }) => role !== 'key' && type === 'TEXT',
  )
  if (texts.length === 0) return
  // First those that begin like one: most columns have none.
  const found = connection
    .prepare(
      `SELECT ${texts.map((column) => `max(${readsLikeList(column)})`).join(', ')} FROM ${quoted(name)} AS t`,
    )
    .raw()
    .get() as (number | null)[]
  for (const column of texts.filter((_, index) => found[index] === 1)) {
    connection
      .prepare(`
        UPDATE sync_known_columns
        SET wide = 1
        WHERE collection = ? AND "column" = ? AND EXISTS (
          SELECT 1
          FROM ${quoted(name)} AS t ${joinRaw(name, keyColumns)}
          WHERE ${readsLikeList(column)} AND ${kindSql(column.path)} = 'text'
        )
      `)
      .run(name, column.name)
  }
}
