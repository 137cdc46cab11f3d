import { JobError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../json/exact.ts'
import { type Catalog, createCatalog, keyColumnNames } from './columns/catalog.ts'
import type { Column, ColumnChange, SqlValue } from './columns/column.ts'
import { discoverElements, type ElementColumn } from './columns/elements.ts'
import { type KeyPart, keyColumnTypes } from './columns/key.ts'
import { sqlitePath } from './columns/path.ts'
import { everyLeaf } from './columns/path-tree.ts'
import { placeItem } from './columns/place.ts'
import type { Connection, Statement } from './database.ts'
import { announceSchema, redeclare, retypeKeys } from './reshape.ts'
import { quoted } from './sql.ts'
import {
  type ArrayView,
  addColumn,
  createTables,
  type KeyType,
  replaceView,
  type TableShape,
  tableName,
} from './tables.ts'

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
  ): string[]
  /** `keep`: whether the version that goes is kept in the history. Returns notices for the log, like insert. */
  update(
    organizationId: string,
    key: readonly KeyPart[],
    row: RawRow,
    json: string,
    item: JsonObject,
    at: string,
    keep: boolean,
  ): string[]
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
  const views = loadViews(connection, name)
  if (!tableExists(connection, name)) createTables(connection, shape())
  const record = createRecorder(connection, name)
  let statements = prepare()

  function shape(): TableShape {
    const columns = catalog.columns.filter((column) => column.role !== 'key')
    return { name, keyColumns, keyTypes: keyTypes.map((type) => type ?? 'INTEGER'), columns }
  }

  function prepare(): Statements {
    return prepareStatements(connection, shape())
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

  function place(item: JsonObject, at: string): { values: Map<string, SqlValue>; notices: string[] } {
    const placement = placeItem(catalog, item)
    const notices = placement.warnings.map((warning) => `${name}: ${warning.message}`)
    catalog = placement.catalog
    if (placement.changes.length > 0) {
      // Columns are added first: a table is declared anew with all of them.
      for (const change of placement.changes) if (change.kind === 'add') add(change.column, at)
      for (const change of placement.changes) if (change.kind !== 'add') notices.push(...alter(change, at))
      statements = prepare()
    }
    discoverViews(item)
    return { values: placement.values, notices }
  }

  function add(column: Column, at: string): void {
    record.column(column, at)
    addColumn(connection, name, column)
  }

  function alter({ kind, column }: ColumnChange, at: string): string[] {
    record.column(column, at)
    if (kind === 'wide') {
      // Another process that does not know it would make the column REAL.
      announceSchema(connection)
      return []
    }
    redeclare(connection, shape())
    return [`${name}: column ${column.name} holds fractions from now on (REAL)`]
  }

  function discoverViews(item: JsonObject): void {
    everyLeaf(catalog.root, item, (slot, value) => {
      const column = slot?.main?.type === 'TEXT' ? slot.main : slot?.text
      if (!column || !Array.isArray(value) || !value.some(isJsonObject)) return true
      const view = `${name}__${column.name}`
      const known = views.get(view)?.elements ?? []
      const elements = discoverElements(known, value)
      if (elements !== known) saveView({ name: view, arrayColumn: column.name, elements })
      return true
    })
  }

  function saveView(view: ArrayView): void {
    views.set(view.name, view)
    for (const element of view.elements) record.element(view, element)
    replaceView(connection, shape(), view)
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

interface Statements {
  find: Statement
  insertRaw: Statement
  updateRaw: Statement
  insertHistory: Statement
  upsertTyped: Statement
  valueColumns: string[]
}

function prepareStatements(connection: Connection, shape: TableShape): Statements {
  const raw = quoted(tableName(shape.name, 'raw'))
  const history = quoted(tableName(shape.name, 'history'))
  const keys = shape.keyColumns.map(quoted)
  const primary = ['"_organization_id"', ...keys]
  const byKey = primary.map((column) => `${column} = ?`).join(' AND ')
  const valueColumns = shape.columns.map((column) => column.name)
  const written = ['"_changed_at"', ...valueColumns.map(quoted)]
  return {
    find: connection.prepare(`SELECT "_json", "_first_seen_at", "_changed_at" FROM ${raw} WHERE ${byKey}`),
    insertRaw: connection.prepare(
      insertSql(raw, [...primary, '"_json"', '"_first_seen_at"', '"_changed_at"']),
    ),
    updateRaw: connection.prepare(`UPDATE ${raw} SET "_json" = ?, "_changed_at" = ? WHERE ${byKey}`),
    insertHistory: connection.prepare(
      insertSql(history, [...primary, '"_json"', '"_valid_from"', '"_valid_to"', '"_reason"']),
    ),
    upsertTyped: connection.prepare(
      `${insertSql(quoted(shape.name), ['"_organization_id"', '"_first_seen_at"', '"_changed_at"', ...keys, ...valueColumns.map(quoted)])}
       ON CONFLICT (${primary.join(', ')})
       DO UPDATE SET ${written.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    ),
    valueColumns,
  }
}

function insertSql(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}

/** The key of a collection decides what an item is, so it stays for as long as its rows do. */
function registerKey(connection: Connection, name: string, keyPaths: readonly (readonly string[])[]): void {
  const key = JSON.stringify(keyPaths.map((path) => path.join('.')))
  const known = connection.prepare('SELECT key FROM sync_collections WHERE name = ?').pluck().get(name) as
    | string
    | undefined
  if (known === undefined)
    connection.prepare('INSERT INTO sync_collections (name, key) VALUES (?, ?)').run(name, key)
  else if (known !== key) {
    throw new JobError(
      'CONFIGURATION',
      `collection ${name} is kept by the key ${known}, and the configuration says ${key}: give it back its key, or use another database`,
    )
  }
}

function tableExists(connection: Connection, name: string): boolean {
  return (
    connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !==
    undefined
  )
}

interface ColumnRow {
  name: string
  path: string
  type: Column['type']
  role: Column['role']
  wide: number
}

function columnRows(connection: Connection, name: string): ColumnRow[] {
  return connection
    .prepare(
      'SELECT "column" AS name, path, type, role, wide FROM sync_columns WHERE collection = ? ORDER BY rowid',
    )
    .all(name) as ColumnRow[]
}

function loadCatalog(
  connection: Connection,
  name: string,
  keyPaths: readonly (readonly string[])[],
): Catalog {
  const columns = columnRows(connection, name).map((row) => ({ ...row, wide: row.wide === 1 }))
  return createCatalog(columns, keyPaths)
}

function loadKeyTypes(
  connection: Connection,
  name: string,
  keyColumns: readonly string[],
): (KeyType | null)[] {
  const rows = columnRows(connection, name).filter((row) => row.role === 'key')
  return keyColumns.map((column) => {
    const type = rows.find((row) => row.name === column)?.type
    return type === 'INTEGER' || type === 'TEXT' ? type : null
  })
}

function loadViews(connection: Connection, name: string): Map<string, ArrayView> {
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
function createRecorder(connection: Connection, name: string) {
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
    key: (column: string, path: readonly string[], type: KeyType, at: string) => {
      saveColumn.run(name, column, sqlitePath(path), type, 'key', 0, at, at)
    },
    element: (view: ArrayView, element: ElementColumn) => {
      saveElement.run(view.name, view.arrayColumn, element.name, element.path, element.type, element.holds)
    },
  }
}
