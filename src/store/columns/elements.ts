import { isJsonObject, type JsonObject, type JsonValue, numberText } from '../../json/value.ts'
import { type ColumnType, columnName, foldName, SQLITE_LIMITS } from './column.ts'
import { createPathTree, everyLeaf, flatten, type Leaf, namesOf, nodeAt, type PathNode } from './flatten.ts'
import { parseSqlitePath, sqlitePath } from './path.ts'
import { isWide, ownValue } from './row.ts'

/** The class of a field's values so far. `wide`: integers, one of which a double would round. */
type Holds = 'boolean' | 'integer' | 'wide' | 'real' | 'text'

/** A column of the view of an array of objects. */
export interface ElementColumn {
  name: string
  /** Within the element: `$.product.sku`. */
  path: string
  type: ColumnType
  holds: Holds
}

const TYPES: Record<Holds, ColumnType> = {
  boolean: 'INTEGER',
  integer: 'INTEGER',
  wide: 'INTEGER',
  real: 'REAL',
  text: 'TEXT',
}

/**
 * Returns the columns of the view after this array, or `known` itself if nothing changed. Objects are
 * flattened like items. A column that meets another class is widened, INTEGER to REAL to TEXT, whatever the
 * order of the values. Fields beyond 500 columns are left out.
 */
export function discoverElements(
  known: readonly ElementColumn[],
  array: readonly JsonValue[],
  limits = SQLITE_LIMITS,
): readonly ElementColumn[] {
  const objects = array.filter(isJsonObject)
  const tree = treeOf(known)
  const isKnown = objects.every((object) =>
    everyLeaf(tree, object, (column, value) => covers(known, limits.mostColumns, column, value)),
  )
  return isKnown ? known : withElements(known, objects, limits)
}

function covers(
  known: readonly ElementColumn[],
  mostColumns: number,
  column: ElementColumn | undefined,
  value: Leaf,
): boolean {
  if (!column) return known.length >= mostColumns
  return column.holds === 'text' || together(column.holds, holdsOf(value)) === column.holds
}

function withElements(
  known: readonly ElementColumn[],
  objects: readonly JsonObject[],
  limits: typeof SQLITE_LIMITS,
): readonly ElementColumn[] {
  const columns = [...known]
  const names = new Set(known.map(({ name }) => foldName(name)))
  // The tree holds indexes into `columns`, since a widened column is another object.
  const tree = createPathTree<number>()
  for (const [index, { path }] of known.entries()) nodeAt(tree, parseSqlitePath(path)).at = index

  function add(path: string[], holds: Holds): void {
    const name = columnName(path, (candidate) => names.has(foldName(candidate)), limits)
    names.add(foldName(name))
    nodeAt(tree, path).at = columns.length
    columns.push({ name, path: sqlitePath(path), type: TYPES[holds], holds })
  }

  for (const object of objects) {
    flatten(object, tree, (field, index, value) => {
      const column = index === undefined ? undefined : columns[index]
      if (column && index !== undefined) columns[index] = widened(column, holdsOf(value))
      else if (columns.length < limits.mostColumns) add(namesOf(field), holdsOf(value))
    })
  }
  return columns
}

function widened(column: ElementColumn, other: Holds): ElementColumn {
  const holds = together(column.holds, other)
  return holds === column.holds ? column : { ...column, holds, type: TYPES[holds] }
}

function holdsOf(value: Leaf): Holds {
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'string' || Array.isArray(value)) return 'text'
  const own = ownValue(value)
  if (typeof own === 'string') return 'text'
  if (typeof own === 'number') return 'real'
  if (!isWide(own)) return 'integer'
  // SQLite reads a number with a point or an exponent as a double, so a long one is exact only as text.
  return /[.eE]/.test(numberText(value)) ? 'text' : 'wide'
}

function together(a: Holds, b: Holds): Holds {
  if (a === b) return a
  const pair = new Set([a, b])
  if (pair.has('integer') && pair.has('wide')) return 'wide'
  return pair.has('integer') && pair.has('real') ? 'real' : 'text'
}

// A list of columns never changes, so its tree lives as long as the list.
const trees = new WeakMap<readonly ElementColumn[], PathNode<ElementColumn>>()

function treeOf(columns: readonly ElementColumn[]): PathNode<ElementColumn> {
  const tree = trees.get(columns) ?? createPathTree<ElementColumn>()
  if (trees.has(columns)) return tree
  for (const column of columns) nodeAt(tree, parseSqlitePath(column.path)).at = column
  trees.set(columns, tree)
  return tree
}
