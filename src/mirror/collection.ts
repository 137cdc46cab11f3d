import type { JsonObject } from '../json/exact.ts'
import type { Notice } from '../sync/types.ts'
import { openArrayViews } from './array-views.ts'
import { createRecorder, loadCatalog, loadKeyTypes, registerKey } from './column-records.ts'
import { keyColumnNames } from './columns/catalog.ts'
import type { Column, ColumnChange, SqlValue } from './columns/column.ts'
import { type KeyPart, keyColumnTypes } from './columns/key.ts'
import { placeItem } from './columns/place.ts'
import type { Connection } from './database.ts'
import { announceSchema, redeclare, retypeKeys } from './reshape.ts'
import { prepareRows, type RowStatements } from './row-statements.ts'
import { addColumn, createTables, type TableShape } from './tables.ts'

/** A row of the raw table. */
export interface RawRow {
  _json: string
  _first_seen_at: string
  _changed_at: string
}

/** The tables of one collection while they are open for writing; everything here runs inside the caller's transaction. */
export interface CollectionTables {
  keyPaths: readonly (readonly string[])[]
  /** Makes room for these keys; a key column that meets a text becomes TEXT. */
  admitKey(key: readonly KeyPart[], at: string): void
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
}

export function openCollection(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
): CollectionTables {
  const keyColumns = keyColumnNames(keyPaths)
  registerKey(connection, name, keyPaths)
  let keyTypes = loadKeyTypes(connection, name, keyColumns)
  let catalog = loadCatalog(connection, name, keyPaths)
  if (!tableExists(connection, name)) createTables(connection, shape())
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

  function bind(key: readonly KeyPart[]): (string | bigint)[] {
    return key.map((part, index) => (keyTypes[index] === 'TEXT' ? part.text : BigInt(part.text)))
  }

  function admitKey(key: readonly KeyPart[], at: string): void {
    const types = keyColumnTypes(keyTypes, key)
    if (types.every((type, index) => type === keyTypes[index])) return
    const before = shape().keyTypes
    keyTypes = types
    for (const [index, type] of types.entries())
      record.key(keyColumns[index] ?? '', keyPaths[index] ?? [], type, at)
    if (types.some((type, index) => type !== before[index])) retypeKeys(connection, shape())
    statements = prepare()
    catalog = loadCatalog(connection, name, keyPaths)
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
    notices.push(...arrayViews.discover(catalog, item, shape))
    return { values: placement.values, notices }
  }

  function add(column: Column, at: string): void {
    record.column(column, at)
    addColumn(connection, name, column)
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
    admitKey,
    find: (organizationId, key) => statements.find.get(organizationId, ...bind(key)) as RawRow | undefined,
    insert(organizationId, key, json, item, at) {
      const { values, notices } = place(item, at)
      statements.insertRaw.run(organizationId, ...bind(key), json, at, at)
      statements.upsertTyped.run(typedRow(organizationId, key, at, at, values))
      return notices
    },
    update(organizationId, key, row, json, item, at, keep) {
      const { values, notices } = place(item, at)
      if (keep)
        statements.insertHistory.run(organizationId, ...bind(key), row._json, row._changed_at, at, 'changed')
      statements.updateRaw.run(json, at, organizationId, ...bind(key))
      statements.upsertTyped.run(typedRow(organizationId, key, row._first_seen_at, at, values))
      return notices
    },
  }
}

function tableExists(connection: Connection, name: string): boolean {
  return (
    connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !==
    undefined
  )
}
