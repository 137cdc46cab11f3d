import { UsageError } from '../../errors.ts'
import { printable } from '../../text.ts'
import { belongsTo, changesViewName, keyColumnNames, splitKey } from '../columns/catalog.ts'
import { all, type Dialect, type Rule } from './sql.ts'
import { knownCollections } from './tables.ts'

// Which tables and views `query`, `export` and `describe` know: of a mirror of either kind, and of a copy.

/** Whole numbers are bigint: none is rounded. */
export type Value = string | number | bigint | null | Uint8Array

export interface Rows {
  columns: string[]
  rows: Iterable<Value[]>
}

/** Rows whose columns have types. */
export interface TypedRows extends Rows {
  /** As declared, or empty where the store does not know; `OWN_TIME` for our own times. */
  types: string[]
}

/** The type of our own times: text of one form. */
export const OWN_TIME = 'TIME'

/** `SELECT a.id, b.id` gives two columns one name; an object needs two. */
export function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let candidate = name
    for (let count = 2; taken.has(candidate); count++) candidate = `${name}_${count}`
    taken.add(candidate)
    return candidate
  })
}

/** A column, with its type in the database's words. */
export interface ListedColumn {
  name: string
  type: string
}

/** A table or view of a collection: `orders`, `orders_raw`, `orders__items`. */
export interface Listed {
  name: string
  collection: string
  /** The key columns of the collection, in order. */
  keys: readonly string[]
  isTable: boolean
  columns: readonly ListedColumn[]
}

export function isOfChanges({ name, collection }: Pick<Listed, 'name' | 'collection'>): boolean {
  return name === changesViewName(collection)
}

/** The collections with tables, by name. */
export function* listedCollections({ limits }: Dialect): Rule<Pick<Listed, 'collection' | 'keys'>[]> {
  const collections = yield* knownCollections()
  return collections.map(({ name, key }) => ({
    collection: name,
    keys: keyColumnNames(splitKey(key), limits),
  }))
}

/** All that the mirror knows, with their latest names; those of the configuration first: one that left it may have the name of another. */
export function listedOrganizations(): Rule<{ id: string; name: string }[]> {
  return all('SELECT id, name FROM organizations ORDER BY configured DESC, name, id')
}

/** The tables and views of the collections, by name. */
export function* listedNames(dialect: Dialect): Rule<string[]> {
  const collections = yield* listedCollections(dialect)
  const names = yield* dialect.relationNames()
  return names.filter((name) => collections.some(({ collection }) => belongsTo(collection, name)))
}

/** Unlike an index or a sequence, which may have such a name, too. */
const WITH_ROWS = ['table', 'view', 'materialized view']

/**
 * The table or view of this name; null if it is none of a collection. Throws UsageError for a view that a user has put there and that does
 * not tell the rows of organizations apart.
 */
export function* findListed(dialect: Dialect, name: string): Rule<Listed | null> {
  const known = (yield* listedCollections(dialect)).find(({ collection }) => belongsTo(collection, name))
  const found = known && (yield* dialect.relationNamed([name]))
  if (!found || found.name !== name || !WITH_ROWS.includes(found.kind)) return null
  const isTable = found.kind === 'table'
  const columns = [...(yield* dialect.columnTypes(name))].map(([column, type]) => ({ name: column, type }))
  if (!columns.some((column) => column.name === '_organization_id'))
    throw foreign(name, 'has no column _organization_id, which tells the rows of organizations apart')
  const own = Object.keys(isTable ? dialect.furtherOfHistory : {})
  return { name, ...known, isTable, columns: columns.filter((column) => !own.includes(column.name)) }
}

/** For a relation of a user's where a view of ours should be. */
export function foreign(name: string, why: string): UsageError {
  return new UsageError(
    `${printable(name)} ${why}, so it was not made by this program; "admin-mirror query" reads what can be read.`,
  )
}
