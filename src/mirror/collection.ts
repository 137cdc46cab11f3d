import type { JsonObject } from '../json/exact.ts'
import type { KeyPart } from '../sync/key.ts'
import type { Notice } from '../sync/types.ts'
import { openArrayViews } from './array-views.ts'
import { makeTables } from './collection-tables.ts'
import { createRecorder, loadCatalog, loadKeyTypes } from './column-records.ts'
import { keyColumnNames } from './columns/catalog.ts'
import type { Column, ColumnChange, SqlValue } from './columns/column.ts'
import { keyColumnTypes } from './columns/key.ts'
import { placeItem } from './columns/place.ts'
import type { Connection } from './database.ts'
import { addColumn, announceSchema, redeclare } from './reshape.ts'
import { hasLeftovers, stepLeftovers, stepRetyping, withBegun } from './retype.ts'
import { prepareRows, type RowStatements } from './row-statements.ts'
import type { KeyType, TableShape } from './tables.ts'

/** A row of the raw table. */
export interface RawRow {
  _json: string
  _first_seen_at: string
  _changed_at: string
}

/** The tables of one collection while they are open for writing; everything here runs inside the caller's transaction. */
export interface CollectionTables {
  keyPaths: readonly (readonly string[])[]
  /**
   * Makes room for these keys; a key column that meets a text becomes TEXT, for which all rows are written anew: at most
   * so many of them at once. False when more are left, and rows with these keys cannot be written yet.
   */
  admitKeys(keys: readonly (readonly KeyPart[])[], at: string, rows: number): boolean
  /** Takes up to so many rows off what a key column that became TEXT has left behind. True when nothing is left. */
  tidy(at: string, rows: number): boolean
  find(organizationId: string, key: readonly KeyPart[]): RawRow | undefined
  insert(
    organizationId: string,
    key: readonly KeyPart[],
    json: string,
    item: JsonObject,
    at: string,
  ): Notice[]
  /** `keep`: whether the version that goes is kept in the history. Returns notices for the log, like insert. */
  update(
    organizationId: string,
    key: readonly KeyPart[],
    row: RawRow,
    json: string,
    item: JsonObject,
    at: string,
    keep: boolean,
  ): Notice[]
  /** Writes the typed row that belongs to a raw one, whatever stands there now. */
  restore(
    organizationId: string,
    key: readonly KeyPart[],
    row: Omit<RawRow, '_json'>,
    item: JsonObject,
    at: string,
  ): Notice[]
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
  let keyTypes = loadKeyTypes(connection, name, keyColumns)
  let catalog = loadCatalog(connection, name, keyPaths)
  const record = createRecorder(connection, name)
  const arrayViews = openArrayViews(connection, name)
  let statements = prepare()

  function shape(): TableShape {
    const columns = catalog.columns.filter((column) => column.role !== 'key')
    return { name, keyColumns, keyTypes: keyTypes.map((type) => type ?? 'INTEGER'), columns }
  }

  function prepare(): RowStatements {
    return prepareRows(connection, shape())
  }

  function bind(key: readonly { text: string }[]): (string | bigint)[] {
    return key.map((part, index) => (keyTypes[index] === 'TEXT' ? part.text : BigInt(part.text)))
  }

  /** True when the key columns have these types, or TEXT where another process is about to make it so. */
  function retype(wanted: readonly KeyType[], at: string, rows: number): boolean {
    const from = shape().keyTypes
    const to = withBegun(connection, { collection: name, keyColumns }, wanted)
    const isDone =
      isSame(from, to) || stepRetyping(connection, { collection: name, keyColumns, from, to }, rows)
    if (!isDone || isSame(to, keyTypes)) return isDone
    keyTypes = to
    for (const [index, type] of to.entries())
      record.key(keyColumns[index] ?? '', keyPaths[index] ?? [], type, at)
    statements = prepare()
    catalog = loadCatalog(connection, name, keyPaths)
    return true
  }

  function admitKeys(keys: readonly (readonly KeyPart[])[], at: string, rows: number): boolean {
    const wanted = keys.reduce<readonly (KeyType | null)[]>(keyColumnTypes, keyTypes)
    if (isSame(wanted, keyTypes)) return true
    return retype(
      wanted.map((type) => type ?? 'INTEGER'),
      at,
      rows,
    )
  }

  function tidy(at: string, rows: number): boolean {
    if (!hasLeftovers(connection, name)) return true
    const types = shape().keyTypes
    const isBegun = !isSame(withBegun(connection, { collection: name, keyColumns }, types), types)
    return (!isBegun || retype(types, at, rows)) && stepLeftovers(connection, name, rows)
  }

  function place(item: JsonObject, at: string): { values: Map<string, SqlValue>; notices: Notice[] } {
    const placement = placeItem(catalog, item)
    const notices: Notice[] = placement.warnings.map(({ message }) => ({ level: 'warn', message }))
    catalog = placement.catalog
    if (placement.changes.length > 0) {
      // Columns are added first: a table is declared anew with all of them.
      for (const change of placement.changes) if (change.kind === 'add') add(change.column, at)
      for (const change of placement.changes) if (change.kind !== 'add') notices.push(...alter(change, at))
      statements = prepare()
    }
    notices.push(...arrayViews.discover(placement.arrays, shape))
    return { values: placement.values, notices }
  }

  function add(column: Column, at: string): void {
    record.column(column, at)
    addColumn(connection, name, column.name, column.type)
  }

  function alter({ kind, column }: ColumnChange, at: string): Notice[] {
    record.column(column, at)
    if (kind === 'wide') {
      // Another process that does not know it would make the column REAL.
      announceSchema(connection)
      return []
    }
    redeclare(connection, name, column.name)
    return [{ level: 'info', message: `column ${column.name} holds fractions from now on (REAL)` }]
  }

  function typedRow(
    organizationId: string,
    key: readonly KeyPart[],
    firstSeenAt: string,
    at: string,
    values: Map<string, SqlValue>,
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
    admitKeys,
    tidy,
    find: (organizationId, key) => statements.find.get(organizationId, ...bind(key)) as RawRow | undefined,
    insert(organizationId, key, json, item, at) {
      const { values, notices } = place(item, at)
      // One that comes back, by a clock that went back, begins when its last version ended.
      const since = latest(at, statements.lastEnd.get(organizationId, ...bind(key)) as string | null)
      statements.insertRaw.run(organizationId, ...bind(key), json, since, since)
      statements.upsertTyped.run(typedRow(organizationId, key, since, since, values))
      return notices
    },
    update(organizationId, key, row, json, item, at, keep) {
      const { values, notices } = place(item, at)
      const end = latest(at, row._changed_at)
      if (keep)
        statements.insertHistory.run(organizationId, ...bind(key), row._json, row._changed_at, end, 'changed')
      statements.updateRaw.run(json, end, organizationId, ...bind(key))
      statements.upsertTyped.run(typedRow(organizationId, key, row._first_seen_at, end, values))
      return notices
    },
    restore(organizationId, key, row, item, at) {
      const { values, notices } = place(item, at)
      statements.upsertTyped.run(typedRow(organizationId, key, row._first_seen_at, row._changed_at, values))
      return notices
    },
    remove(organizationId, key, reason, at, keep) {
      const primary = [organizationId, ...bind(key)]
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

function isSame(types: readonly (KeyType | null)[], others: readonly (KeyType | null)[]): boolean {
  return types.every((type, index) => type === others[index])
}
