import type { JsonObject } from '../json/value.ts'
import type { KeyPart } from '../sync/key.ts'
import type { Notice } from '../sync/types.ts'
import { openArrayViews } from './array-views.ts'
import { makeTables } from './collection-tables.ts'
import { loadCatalog } from './column-records.ts'
import { keyColumnNames, keyTypesOf } from './columns/catalog.ts'
import type { ColumnChange } from './columns/column.ts'
import { extendCatalog } from './columns/extend.ts'
import { type KeyType, keyColumnTypes } from './columns/key.ts'
import { type TypedRow, toRow } from './columns/row.ts'
import type { Connection } from './database.ts'
import { boundKey } from './raw-rows.ts'
import { dropFormerCopy } from './rebuild-table.ts'
import { prepareRows } from './row-statements.ts'
import { KINDS, type TableShape, tableName } from './tables.ts'

/** A row of the raw table. */
export interface RawRow {
  _json: string
  _first_seen_at: string
  _changed_at: string
}

/** The typed rows of items; or, before there are any, what has to become of the columns. */
export type Placement = { notices: Notice[] } & (
  | { rows: TypedRow[]; changes?: never }
  | { rows?: never; changes: readonly ColumnChange[] }
)

/** The tables of one collection while they are open for writing; everything here runs inside the caller's transaction. */
export interface CollectionTables {
  keyPaths: readonly (readonly string[])[]
  /** Finds room for a page: its keys, and those of its items that are to be written. */
  place(keys: readonly (readonly KeyPart[])[], items: readonly JsonObject[]): Placement
  /** Makes, or extends, the views of the arrays in these rows. Returns notices for the log. */
  extendViews(rows: readonly TypedRow[]): Notice[]
  find(organizationId: string, key: readonly KeyPart[]): RawRow | undefined
  insert(organizationId: string, key: readonly KeyPart[], json: string, typed: TypedRow, at: string): void
  /** `keep`: whether the version that goes is kept in the history. */
  update(
    organizationId: string,
    key: readonly KeyPart[],
    row: RawRow,
    json: string,
    typed: TypedRow,
    at: string,
    keep: boolean,
  ): void
  /** Writes the typed row that belongs to a raw one, whatever stands there now. */
  restore(organizationId: string, key: readonly KeyPart[], row: Omit<RawRow, '_json'>, typed: TypedRow): void
  /** False when there is no such row. `keep` as for update. */
  remove(
    organizationId: string,
    key: readonly { text: string }[],
    reason: RemovalReason,
    at: string,
    keep: boolean,
  ): boolean
  /** Takes up to so many versions that ended before a time off the history; returns how many. */
  pruneHistory(organizationId: string, before: string, rows: number): number
}

export type RemovalReason = 'removed' | 'out_of_scope'

export function openCollection(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
): CollectionTables {
  makeTables(connection, name, keyPaths)
  const keyColumns = keyColumnNames(keyPaths)
  let catalog = loadCatalog(connection, name, keyPaths)
  const shape = tableShape()
  for (const kind of KINDS) dropFormerCopy(connection, tableName(name, kind))
  const arrayViews = openArrayViews(connection, name)
  const statements = prepareRows(connection, shape)

  function tableShape(): TableShape {
    const columns = catalog.columns.filter((column) => column.role !== 'key')
    return { name, keyColumns, keyTypes: keyTypesOf(catalog).map((type) => type ?? 'INTEGER'), columns }
  }

  function bind(key: readonly Pick<KeyPart, 'text'>[]): (string | bigint)[] {
    const bound = boundKey(key, shape.keyTypes)
    if (bound) return bound
    throw new Error(`a key column of ${name} has no room for ${JSON.stringify(key)}`)
  }

  function hasRoomFor(keys: readonly (readonly KeyPart[])[]): boolean {
    const known = keyTypesOf(catalog)
    const wanted = keys.reduce<readonly (KeyType | null)[]>(keyColumnTypes, known)
    return wanted.every((type, index) => type === known[index])
  }

  function place(keys: readonly (readonly KeyPart[])[], items: readonly JsonObject[]): Placement {
    const known = items.map((item) => toRow(catalog, item))
    if (hasRoomFor(keys) && isComplete(known)) return { rows: known, notices: [] }
    // Read again: another process may have noted that a column is wide, which no change of the schema tells.
    const stored = loadCatalog(connection, name, keyPaths, catalog.isFullReported)
    const { catalog: extended, changes, warnings } = extendCatalog(stored, keys, items)
    const notices = [
      ...warnings.map(({ message }): Notice => ({ level: 'warn', message })),
      ...changes.filter(isWidening).map(wideningNotice),
    ]
    if (changes.length > 0) return { changes, notices }
    catalog = extended
    const rows = items.map((item) => toRow(catalog, item))
    if (isComplete(rows)) return { rows, notices }
    throw new Error('items do not fit the columns that were made for them')
  }

  function typedRow(
    organizationId: string,
    key: readonly KeyPart[],
    firstSeenAt: string,
    at: string,
    { values }: TypedRow,
  ) {
    return [
      organizationId,
      firstSeenAt,
      at,
      ...bind(key),
      ...statements.valueColumns.map((column) => values.get(column) ?? null),
    ]
  }

  return {
    keyPaths,
    place,
    extendViews: (rows) =>
      arrayViews.discover(
        rows.flatMap(({ arrays }) => arrays),
        () => shape,
      ),
    find(organizationId, key) {
      const bound = boundKey(key, shape.keyTypes)
      return bound ? (statements.find.get(organizationId, ...bound) as RawRow | undefined) : undefined
    },
    insert(organizationId, key, json, typed, at) {
      // One that comes back, by a clock that went back, begins when its last version ended.
      const since = latest(at, statements.lastEnd.get(organizationId, ...bind(key)) as string | null)
      statements.insertRaw.run(organizationId, ...bind(key), json, since, since)
      statements.upsertTyped.run(typedRow(organizationId, key, since, since, typed))
    },
    update(organizationId, key, row, json, typed, at, keep) {
      const end = latest(at, row._changed_at)
      if (keep)
        statements.insertHistory.run(organizationId, ...bind(key), row._json, row._changed_at, end, 'changed')
      statements.updateRaw.run(json, end, organizationId, ...bind(key))
      statements.upsertTyped.run(typedRow(organizationId, key, row._first_seen_at, end, typed))
    },
    restore(organizationId, key, row, typed) {
      statements.upsertTyped.run(typedRow(organizationId, key, row._first_seen_at, row._changed_at, typed))
    },
    remove(organizationId, key, reason, at, keep) {
      const bound = boundKey(key, shape.keyTypes)
      if (!bound) return false
      const primary = [organizationId, ...bound]
      const row = statements.find.get(...primary) as RawRow | undefined
      if (!row) return false
      const end = latest(at, row._changed_at)
      if (keep) statements.insertHistory.run(...primary, row._json, row._changed_at, end, reason)
      statements.deleteTyped.run(...primary)
      statements.deleteRaw.run(...primary)
      return true
    },
    pruneHistory: (organizationId, before, rows) =>
      statements.pruneHistory.run(organizationId, before, rows).changes,
  }
}

/** No version ends before it began, whatever becomes of the clock. */
function latest(at: string, other: string | null): string {
  return other !== null && other > at ? other : at
}

function isComplete(rows: readonly (TypedRow | null)[]): rows is TypedRow[] {
  return !rows.includes(null)
}

function isWidening({ kind, column }: ColumnChange): boolean {
  return kind === 'type' && column.role !== 'key'
}

function wideningNotice({ column }: ColumnChange): Notice {
  return { level: 'info', message: `column ${column.name} holds fractions from now on (REAL)` }
}
