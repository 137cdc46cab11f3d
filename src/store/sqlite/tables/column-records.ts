import { assertSameKey, type Catalog, createCatalog, type KeyPaths } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import { loadColumns as readColumns, knownKey as readKey } from '../../core/tables.ts'
import { runRule, SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'

/** Notes a collection's key, which cannot change while it has rows. */
export function registerKey(connection: Connection, name: string, keyPaths: KeyPaths): void {
  connection
    .prepare('INSERT INTO sync_collections (name, key) VALUES (?, ?)')
    .run(name, JSON.stringify(dotted(keyPaths)))
}

/** Returns whether the mirror knows the collection. Throws JobError if it has another key there. */
export function assertKey(connection: Connection, name: string, keyPaths: KeyPaths): boolean {
  const known = knownKey(connection, name)
  if (known !== null) assertSameKey(name, known, dotted(keyPaths))
  return known !== null
}

/** See core/tables.ts. */
export function knownKey(connection: Connection, name: string): string[] | null {
  return runRule(connection, readKey(name))
}

function dotted(keyPaths: KeyPaths): string[] {
  return keyPaths.map((path) => path.join('.'))
}

/** See core/tables.ts. */
export function loadColumns(connection: Connection, name: string): Column[] {
  return runRule(connection, readColumns(SQLITE, name))
}

export function loadCatalog(
  connection: Connection,
  name: string,
  keyPaths: KeyPaths,
  isFullReported = false,
): Catalog {
  return createCatalog(loadColumns(connection, name), keyPaths, isFullReported)
}

/** Returns a function that adds a column of the collection to `sync_known_columns`, or updates it. */
export function prepareSaveColumn(
  connection: Connection,
  collection: string,
): (column: Column, at: string) => void {
  const save = connection.prepare(`
    INSERT INTO sync_known_columns (collection, "column", path, type, role, wide, first_seen_at, last_changed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (collection, "column")
    DO UPDATE SET
      last_changed_at = CASE WHEN type = excluded.type THEN last_changed_at ELSE excluded.last_changed_at END,
      type = excluded.type,
      wide = excluded.wide
  `)
  return ({ name, path, type, role, wide }, at) => {
    save.run(collection, name, path, type, role, wide ? 1 : 0, at, at)
  }
}
