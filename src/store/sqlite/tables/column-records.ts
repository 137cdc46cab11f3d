import { JobError } from '../../../errors.ts'
import { type Catalog, createCatalog } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import type { ElementColumn } from '../../columns/elements.ts'
import type { Connection } from '../file/open.ts'
import type { ArrayView } from './declarations.ts'

/** The key of a collection decides what an item is, so it stays for as long as its rows do. */
export function registerKey(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
): void {
  connection
    .prepare('INSERT INTO sync_collections (name, key) VALUES (?, ?)')
    .run(name, JSON.stringify(dotted(keyPaths)))
}

/** Throws where the mirror keeps the collection by another key. False where it does not know the collection yet. */
export function assertKey(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
): boolean {
  const known = knownKey(connection, name)
  if (known === null) return false
  const wanted = dotted(keyPaths)
  if (JSON.stringify(known) === JSON.stringify(wanted)) return true
  throw new JobError(
    'CONFIGURATION',
    `the mirror keeps ${name} by the key ${known.join(', ')}, and the configuration says ${wanted.join(', ')}: give it ` +
      `back its key; or, to read everything anew by the other one, run "admin-mirror forget --org ORG --collection ${name} ` +
      '--yes" for every organization, and then sync',
  )
}

/** The dotted paths of the key that the mirror keeps a collection by; null where it does not know the collection. */
export function knownKey(connection: Connection, name: string): string[] | null {
  const key = connection.prepare('SELECT key FROM sync_collections WHERE name = ?').pluck().get(name)
  return typeof key === 'string' ? (JSON.parse(key) as string[]) : null
}

function dotted(keyPaths: readonly (readonly string[])[]): string[] {
  return keyPaths.map((path) => path.join('.'))
}

/** The discovered columns of a collection, in the order in which they were made. */
export function loadColumns(connection: Connection, name: string): Column[] {
  const rows = connection
    .prepare(
      'SELECT "column" AS name, path, type, role, wide FROM sync_columns WHERE collection = ? ORDER BY rowid',
    )
    .all(name) as (Omit<Column, 'wide'> & { wide: number })[]
  return rows.map((row) => ({ ...row, wide: row.wide === 1 }))
}

export function loadCatalog(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
  isFullReported = false,
): Catalog {
  return createCatalog(loadColumns(connection, name), keyPaths, isFullReported)
}

export function loadViews(connection: Connection, name: string): Map<string, ArrayView> {
  const rows = connection
    .prepare(
      `SELECT view, array_column, "column" AS name, path, type, holds
       FROM sync_view_columns
       WHERE substr(view, 1, ?) = ?
       ORDER BY rowid`,
    )
    .all(name.length + 2, `${name}__`) as (ElementColumn & { view: string; array_column: string })[]
  const views = new Map<string, ArrayView>()
  for (const { view, array_column: arrayColumn, ...element } of rows) {
    views.set(view, { name: view, arrayColumn, elements: [...(views.get(view)?.elements ?? []), element] })
  }
  return views
}

/** Keeps `sync_columns` and `sync_view_columns`. */
export function createRecorder(connection: Connection, name: string) {
  const saveColumn = connection.prepare(
    `INSERT INTO sync_columns (collection, "column", path, type, role, wide, first_seen_at, last_changed_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (collection, "column")
     DO UPDATE SET
       last_changed_at = CASE WHEN type = excluded.type THEN last_changed_at ELSE excluded.last_changed_at END,
       type = excluded.type,
       wide = excluded.wide`,
  )
  const saveElement = connection.prepare(
    `INSERT INTO sync_view_columns (view, array_column, "column", path, type, holds)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (view, "column") DO UPDATE SET type = excluded.type, holds = excluded.holds`,
  )
  return {
    column: (column: Column, at: string) => {
      saveColumn.run(name, column.name, column.path, column.type, column.role, column.wide ? 1 : 0, at, at)
    },
    element: (view: ArrayView, element: ElementColumn) => {
      saveElement.run(view.name, view.arrayColumn, element.name, element.path, element.type, element.holds)
    },
  }
}
