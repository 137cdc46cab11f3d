import type { JsonObject } from '../../../json/value.ts'
import type { KeyPart } from '../../../sync/key.ts'
import type { Notice } from '../../../sync/types.ts'
import { type KeyType, keyColumnNames, keyColumnTypes, keyTypesOf } from '../../columns/catalog.ts'
import type { ColumnChange } from '../../columns/column.ts'
import { extendCatalog } from '../../columns/extend.ts'
import { type TypedRow, toRow } from '../../columns/row.ts'
import type { Connection } from '../file/open.ts'
import { openArrayViews } from './array-views.ts'
import { loadCatalog } from './column-records.ts'
import { makeTables } from './configured.ts'
import { KINDS, type TableShape, tableName } from './declarations.ts'
import { boundKey } from './key-columns.ts'
import { dropFormerCopy } from './rebuild-table.ts'
import { prepareRows } from './rows.ts'

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
  insert(organizationId: string, key: readonly KeyPart[], json: string, typed: TypedRow, at: string): void
  /** `keep`: whether the version that is replaced is kept in the history. */
  update(
    organizationId: string,
    key: readonly KeyPart[],
    json: string,
    typed: TypedRow,
    at: string,
    keep: boolean,
  ): void
  /** Writes the typed row that belongs to a raw one, over the one that is there. */
  restore(organizationId: string, key: readonly KeyPart[], times: RowTimes, typed: TypedRow): void
  shape(): TableShape
  /** Deletes a batch of the versions that ended before a time. Returns true when none is left. */
  pruneHistory(organizationId: string, before: string): boolean
}

/** When an item was seen first, and since when it is as it is now. */
export interface RowTimes {
  _first_seen_at: string
  _changed_at: string
}

/** Versions lie here and there in the file, each on a database page of its own. */
const PRUNED_AT_ONCE = 1000

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
    insert(organizationId, key, json, typed, at) {
      // One that comes back, by a clock that went back, begins when its last version ended.
      const since = latest(at, statements.lastEnd.get(organizationId, ...bind(key)) as string | null)
      statements.insertRaw.run(organizationId, ...bind(key), json, since, since)
      statements.upsertTyped.run(typedRow(organizationId, key, since, since, typed))
    },
    update(organizationId, key, json, typed, at, keep) {
      const primary = [organizationId, ...bind(key)]
      if (keep) statements.keepVersion.run(at, ...primary)
      const times = statements.updateRaw.get(json, at, ...primary) as [string, string] | undefined
      if (!times) throw new Error(`${name} has no row ${JSON.stringify(key)} to update`)
      statements.upsertTyped.run(typedRow(organizationId, key, ...times, typed))
    },
    restore(organizationId, key, times, typed) {
      statements.upsertTyped.run(
        typedRow(organizationId, key, times._first_seen_at, times._changed_at, typed),
      )
    },
    shape: () => shape,
    pruneHistory: (organizationId, before) =>
      statements.pruneHistory.run(organizationId, before, PRUNED_AT_ONCE).changes < PRUNED_AT_ONCE,
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
