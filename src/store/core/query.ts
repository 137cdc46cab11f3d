import { belongsTo } from '../columns/catalog.ts'
import { all, type Rule } from './sql.ts'

// What `query` and `export` read of a mirror of either kind, and of a copy.

/** Whole numbers are bigint: none is rounded. */
export type Value = string | number | bigint | null | Uint8Array

/** Rows with the names and types of their columns. They come some at a time: memory holds no large result whole. */
export interface Rows {
  columns: string[]
  /** As declared, or empty where the store does not know. */
  types: string[]
  batches: Iterable<Iterable<readonly Value[]>> | AsyncIterable<Iterable<readonly Value[]>>
}

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

/** The first word of a statement, in capitals, behind comments. */
export function firstWord(sql: string): string {
  return /^(?:\s|--.*\n|\/\*[\s\S]*?\*\/)*(\w*)/.exec(sql)?.[1]?.toUpperCase() ?? ''
}

/** What every mirror has for people, whatever its collections are. All else that begins with `sync_` is the program's own. */
export const OF_EVERY_MIRROR: readonly string[] = [
  'organizations',
  'sync_status',
  'sync_runs',
  'sync_walks',
  'sync_columns',
  'sync_rejects',
]

/** Whether a column is for people, too: not the number by which the program finds the JSON of a row, for example. */
export function isForPeople(table: string, column: string): boolean {
  return OF_EVERY_MIRROR.includes(table) ? !column.startsWith('_') : column !== '_row'
}

/** Whether a mirror with these collections may have a table or view of this name of ours. */
export function mayHold(collections: readonly string[], name: string): boolean {
  return OF_EVERY_MIRROR.includes(name) || collections.some((collection) => belongsTo(collection, name))
}

/** All that the mirror knows, with their latest names; those of the configuration first: one that left it may have the name of another. */
export function listedOrganizations(): Rule<{ id: string; name: string }[]> {
  return all('SELECT id, name FROM organizations ORDER BY configured DESC, name, id')
}

/** The names of the collections, from what a published file has, too. */
export function* collectionNames(): Rule<string[]> {
  const found = yield* all<{ collection: string }>(
    'SELECT collection FROM sync_status UNION SELECT collection FROM sync_columns ORDER BY collection',
  )
  return found.map(({ collection }) => collection)
}
