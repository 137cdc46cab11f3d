import type { KeyPart } from '../../../sync/items.ts'
import type { TableShape } from '../../columns/catalog.ts'
import type { SqlValue } from '../../columns/column.ts'
import type { TypedRow } from '../../columns/row.ts'
import { type Connection, castParameter, quoted } from '../sql.ts'
import { tableName } from './declarations.ts'
import { boundKey } from './lookup.ts'

/** Writes one collection's rows, inside the caller's transaction. */
export interface RowWriter {
  insert(organizationId: string, key: readonly KeyPart[], json: string, typed: TypedRow, event: Written): void
  /** `changedFields`: the paths that changed, for the version that the history keeps; null: it keeps none. */
  update(
    organizationId: string,
    key: readonly KeyPart[],
    json: string,
    typed: TypedRow,
    event: Written,
    changedFields: readonly string[] | null,
  ): void
  /** Writes the typed row of a raw one, or replaces it. */
  restore(organizationId: string, key: readonly KeyPart[], times: StoredTimes, typed: TypedRow): void
}

/** When a row is written, and with which number of its collection. */
export interface Written {
  at: string
  seq: number
}

/** When an item was first seen, and since when it is as it is now. */
export interface StoredTimes {
  _first_seen_at: string
  _changed_at: string
}

export function createRowWriter(connection: Connection, shape: TableShape): RowWriter {
  const statements = prepareStatements(connection, shape)

  function bind(key: readonly Pick<KeyPart, 'text'>[]): (string | bigint)[] {
    const bound = boundKey(key, shape.keyTypes)
    if (bound) return bound
    throw new Error(`a key column of ${shape.name} has no room for ${JSON.stringify(key)}`)
  }

  function writeTyped(primary: readonly SqlValue[], times: readonly string[], { values }: TypedRow): void {
    const columns = shape.columns.map(({ name }) => values.get(name) ?? null)
    statements.upsertTyped.run(...primary, ...times, ...columns)
  }

  return {
    insert(organizationId, key, json, typed, { at, seq }) {
      const primary = [organizationId, ...bind(key)]
      // If the clock went back, an item that returns begins when its last version ended.
      const lastEnd = statements.lastEnd.get(...primary) as string | null
      const since = lastEnd !== null && lastEnd > at ? lastEnd : at
      statements.insertRaw.run(...primary, json, since, since, seq, seq)
      writeTyped(primary, [since, since], typed)
    },
    update(organizationId, key, json, typed, { at, seq }, changedFields) {
      const primary = [organizationId, ...bind(key)]
      if (changedFields) statements.keepVersion.run(at, JSON.stringify(changedFields), seq, ...primary)
      const times = statements.updateRaw.get(json, at, seq, ...primary) as [string, string] | undefined
      if (!times) throw new Error(`${shape.name} has no row ${JSON.stringify(key)} to update`)
      writeTyped(primary, times, typed)
    },
    restore(organizationId, key, { _first_seen_at, _changed_at }, typed) {
      writeTyped([organizationId, ...bind(key)], [_first_seen_at, _changed_at], typed)
    },
  }
}

function prepareStatements(connection: Connection, shape: TableShape) {
  const raw = quoted(tableName(shape.name, 'raw'))
  const history = quoted(tableName(shape.name, 'history'))
  const primary = ['_organization_id', ...shape.keyColumns].map(quoted)
  const byKey = primary.map((column) => `${column} = ?`).join(' AND ')
  const byCastKey = primary
    .map((column, index) => `${column} = ${castParameter(shape.keyTypes[index - 1] ?? 'TEXT')}`)
    .join(' AND ')
  const written = ['"_first_seen_at"', '"_changed_at"', ...shape.columns.map(({ name }) => quoted(name))]
  return {
    insertRaw: connection.prepare(
      insertSql(raw, [
        ...primary,
        '"_json"',
        '"_first_seen_at"',
        '"_changed_at"',
        '"_first_seen_seq"',
        '"_changed_seq"',
      ]),
    ),
    // No version ends before it began, even if the clock went back.
    updateRaw: connection
      .prepare(`
        UPDATE ${raw} SET "_json" = ?, "_changed_at" = max("_changed_at", ?), "_changed_seq" = ? WHERE ${byKey}
        RETURNING "_first_seen_at", "_changed_at"
      `)
      .raw(),
    keepVersion: connection.prepare(`
      INSERT INTO ${history} (
        ${primary.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at", "_changed_fields",
        "_valid_from_seq", "_valid_to_seq"
      )
      SELECT
        ${primary.join(', ')}, "_json", "_changed_at", max("_changed_at", ?), 'changed', "_first_seen_at", ?, "_changed_seq", ?
      FROM ${raw}
      WHERE ${byKey}
    `),
    upsertTyped: connection.prepare(`
      ${insertSql(quoted(shape.name), [...primary, ...written])}
      ON CONFLICT (${primary.join(', ')})
      DO UPDATE SET ${written.map((column) => `${column} = excluded.${column}`).join(', ')}
    `),
    lastEnd: connection.prepare(`SELECT max("_valid_to") FROM ${history} WHERE ${byCastKey}`).pluck(),
  }
}

function insertSql(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}
