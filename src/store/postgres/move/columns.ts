import { type KeyPaths, keyColumnNames } from '../../columns/catalog.ts'
import { type Column, foldName, freeName } from '../../columns/column.ts'
import { POSTGRES_LIMITS } from '../sql.ts'
import { keyNames } from '../tables/shape.ts'

// Columns keep their names, since saved queries have them, where PostgreSQL can have such names.

/** A column of the file, and what it is called on the server. */
export interface RenamedColumn<C extends { name: string }> {
  from: string
  column: C
}

/** The columns of a collection on the server. Those beyond its limit are left out: their values stay in `_json`. */
export function renamedColumns(columns: readonly Column[], keyPaths: KeyPaths): RenamedColumn<Column>[] {
  const fileKeys = keyColumnNames(keyPaths)
  const serverKeys = keyNames(keyPaths)
  const taken = new Set([...POSTGRES_LIMITS.reserved, ...serverKeys].map(foldName))
  const missingKeys = serverKeys.length - columns.filter(({ role }) => role === 'key').length
  return columns.slice(0, POSTGRES_LIMITS.mostColumns - missingKeys).map((column) => {
    const name =
      column.role === 'key'
        ? (serverKeys[fileKeys.indexOf(column.name)] ?? column.name)
        : freeOne(column.name, taken)
    return { from: column.name, column: { ...column, name } }
  })
}

/** The columns of a view of an array. */
export function renamedElements(elements: readonly Column[], parents: readonly string[]): Column[] {
  const taken = new Set(parents.map(foldName))
  return elements.map((element) => ({ ...element, name: freeOne(element.name, taken) }))
}

function freeOne(name: string, taken: Set<string>): string {
  const free = freeName(name, (candidate) => taken.has(foldName(candidate)), POSTGRES_LIMITS)
  taken.add(foldName(free))
  return free
}
