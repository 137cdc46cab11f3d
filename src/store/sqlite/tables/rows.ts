import type { Connection, Statement } from '../file/open.ts'
import { quoted, unplanned } from '../sql.ts'
import { type TableShape, tableName } from './declarations.ts'

/** The statements that read and write one collection's rows; made anew when its columns change. */
export interface RowStatements {
  insertRaw: Statement
  /** Returns when the item was first seen, and since when it is as it is now. */
  updateRaw: Statement
  /** Keeps the version that an update replaces. */
  keepVersion: Statement
  upsertTyped: Statement
  /** When the last version of an item ended that the history holds. */
  lastEnd: Statement
  /** Takes versions off the history that ended before a time, the oldest first. */
  pruneHistory: Statement
  valueColumns: string[]
}

export function prepareRows(connection: Connection, shape: TableShape): RowStatements {
  const raw = quoted(tableName(shape.name, 'raw'))
  const history = quoted(tableName(shape.name, 'history'))
  const keys = shape.keyColumns.map(quoted)
  const primary = ['"_organization_id"', ...keys]
  const byKey = primary.map((column) => `${column} = ?`).join(' AND ')
  const byKeyUnplanned = primary
    .map((column, index) => `${column} = ${unplanned(shape.keyTypes[index - 1] ?? 'TEXT')}`)
    .join(' AND ')
  const valueColumns = shape.columns.map((column) => column.name)
  const written = ['"_first_seen_at"', '"_changed_at"', ...valueColumns.map(quoted)]
  return {
    insertRaw: connection.prepare(
      insertSql(raw, [...primary, '"_json"', '"_first_seen_at"', '"_changed_at"']),
    ),
    // No version ends before it began, even when the clock went back.
    updateRaw: connection
      .prepare(`
        UPDATE ${raw} SET "_json" = ?, "_changed_at" = max("_changed_at", ?) WHERE ${byKey}
        RETURNING "_first_seen_at", "_changed_at"
      `)
      .raw(),
    keepVersion: connection.prepare(`
      INSERT INTO ${history} (${primary.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason")
      SELECT ${primary.join(', ')}, "_json", "_changed_at", max("_changed_at", ?), 'changed' FROM ${raw} WHERE ${byKey}
    `),
    upsertTyped: connection.prepare(
      `${insertSql(quoted(shape.name), ['"_organization_id"', '"_first_seen_at"', '"_changed_at"', ...keys, ...valueColumns.map(quoted)])}
       ON CONFLICT (${primary.join(', ')})
       DO UPDATE SET ${written.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    ),
    lastEnd: connection.prepare(`SELECT max("_valid_to") FROM ${history} WHERE ${byKeyUnplanned}`).pluck(),
    pruneHistory: connection.prepare(`
      DELETE FROM ${history}
      WHERE _rowid_ IN (
        SELECT _rowid_ FROM ${history} WHERE "_organization_id" = ? AND "_valid_to" < ? ORDER BY "_valid_to" LIMIT ?
      )
    `),
    valueColumns,
  }
}

function insertSql(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}
