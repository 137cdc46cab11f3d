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

/**
 * What every mirror has for people, whatever its collections are, with the columns that are for them; null: all. All else that begins with
 * `sync_` is the program's own.
 */
export const OF_EVERY_MIRROR: Readonly<Record<string, readonly string[] | null>> = {
  organizations: null,
  sync_status: null,
  sync_runs: columns(
    'id walk_id organization_id collection trigger status started_at finished_at first_page pages rows_seen rows_added rows_changed ' +
      'rows_removed requests retries rate_limit_hits rate_limit_wait_ms error_code error_message',
  ),
  sync_walks: columns(
    'id organization_id collection kind filters status next_page pages rows_seen total passes coverage started_at updated_at finished_at',
  ),
  sync_columns: columns('collection column path type first_seen_at'),
  sync_rejects: columns('organization_id collection page reason json seen_at'),
}

function columns(names: string): string[] {
  return names.split(' ')
}

/** Whether a mirror with these collections may have a table or view of this name of ours. */
export function mayHold(collections: readonly string[], name: string): boolean {
  return Object.hasOwn(OF_EVERY_MIRROR, name) || collections.some((collection) => belongsTo(collection, name))
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
