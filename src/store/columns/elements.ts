import { isJsonObject, type JsonObject, type JsonValue } from '../../json/value.ts'
import {
  type Column,
  type ColumnLimits,
  type ColumnType,
  columnName,
  foldName,
  freeName,
  parseSqlitePath,
  sqlitePath,
  TRUTHS,
} from './column.ts'
import { hasNumbersAsNames, ownValue, typeOf } from './row.ts'

// The fields of the view of an array of objects. A field gets its type with its first value, and whole numbers become fractions; what does not
// fit it is null in the view.

/** The view of an array of objects: `orders__items`. */
export interface ArrayView {
  name: string
  arrayColumn: string
  elements: readonly ElementColumn[]
}

/** A column of it; its path is within the element. */
export type ElementColumn = Pick<Column, 'name' | 'path' | 'type'>

/** What is known of a field of the elements, and of its own fields. */
interface Field {
  type: ColumnType | null
  /** The place of its column. */
  at: number
  fields: Map<string, Field>
}

/** The columns of the view after this array; null if it has them all. */
export function extendElements(
  known: readonly ElementColumn[],
  array: readonly JsonValue[],
  limits: ColumnLimits,
): readonly ElementColumn[] | null {
  const objects = array.filter(isJsonObject)
  const isFull = known.length >= limits.mostColumns
  if (objects.every((object) => hasFields(knownFields(known), object, isFull))) return null
  const draft = {
    columns: [...known],
    names: new Set([...known.map(({ name }) => foldName(name)), ...TRUTHS]),
    limits,
  }
  const root = fieldsOf(known)
  for (const object of objects) extend(draft, root, object, [])
  return draft.columns
}

function fieldsOf(known: readonly ElementColumn[]): Field {
  const root = emptyField()
  for (const [at, { path, type }] of known.entries()) {
    let field = root
    for (const name of parseSqlitePath(path)) field = fieldAt(field, name)
    Object.assign(field, { type, at })
  }
  return root
}

function emptyField(): Field {
  return { type: null, at: -1, fields: new Map() }
}

function fieldAt({ fields }: Field, name: string): Field {
  const field = fields.get(name) ?? emptyField()
  fields.set(name, field)
  return field
}

// A list of columns never changes, so its tree lives as long as the list.
const trees = new WeakMap<readonly ElementColumn[], Field>()

function knownFields(known: readonly ElementColumn[]): Field {
  const tree = trees.get(known) ?? fieldsOf(known)
  trees.set(known, tree)
  return tree
}

/** Whether all fields of an object have columns. `isFull`: no further ones are added. */
function hasFields(known: Field | undefined, object: JsonObject, isFull: boolean): boolean {
  return Object.keys(object).every((name) => {
    const value = object[name]
    if (value === null || value === undefined) return true
    const field = known?.fields.get(name)
    if (!field && isFull) return true
    if (isJsonObject(value)) return isListIn(field, value) || hasFields(field, value, isFull)
    if (!field || field.type === null) return isFull
    return field.type !== 'INTEGER' || typeof ownValue(value) !== 'number'
  })
}

/** An object in place of a list. */
function isListIn(field: Field | undefined, value: JsonObject): boolean {
  return field?.type === 'TEXT' && hasNumbersAsNames(value)
}

interface Draft {
  columns: ElementColumn[]
  /** Folded ones. */
  names: Set<string>
  limits: ColumnLimits
}

function extend(draft: Draft, known: Field, object: JsonObject, above: readonly string[]): void {
  const { columns, names, limits } = draft
  for (const name of Object.keys(object)) {
    const value = object[name]
    if (value === null || value === undefined) continue
    // No path is spelled out for what is left out: that may be millions of fields.
    if (columns.length >= limits.mostColumns && !known.fields.has(name)) continue
    const field = fieldAt(known, name)
    if (isJsonObject(value)) {
      if (!isListIn(field, value)) extend(draft, field, value, [...above, name])
      continue
    }
    const type = typeOf(ownValue(value))
    const column = columns[field.at]
    if (column && field.type === 'INTEGER' && type === 'REAL') columns[field.at] = { ...column, type }
    if (column || columns.length >= limits.mostColumns) continue
    const path = [...above, name]
    const free = columnName(path, (one) => names.has(foldName(one)), limits)
    names.add(foldName(free))
    Object.assign(field, { type, at: columns.length })
    columns.push({ name: free, path: sqlitePath(path), type })
  }
}

/** The name of the view of an array: `orders__items`; numbered where one of `taken` is called so, since both were cut alike. */
export function arrayViewName(
  collection: string,
  column: string,
  taken: Iterable<string>,
  limits: ColumnLimits,
): string {
  const names = new Set([...taken].map(foldName))
  return freeName(`${collection}__${column}`, (name) => names.has(foldName(name)), limits)
}

/** The names of the key columns in the view of an array: `_parent_id`. */
export function parentNames(keyColumns: readonly string[], limits: ColumnLimits): string[] {
  const names = new Set<string>()
  return keyColumns.map((key) => {
    const name = freeName(`_parent_${key}`, (candidate) => names.has(foldName(candidate)), limits)
    names.add(foldName(name))
    return name
  })
}
