import { JobError } from '../../errors.ts'
import {
  assertSameKey,
  changesViewName,
  shapeOf,
  TABLE_KINDS,
  type TableShape,
  tableName,
  versionsViewName,
} from '../columns/catalog.ts'
import { dropArrayViews, isTaken, replaceViews } from './array-views.ts'
import { completeTables, namesOfTables } from './declarations.ts'
import type { Alteration } from './fit.ts'
import { type Dialect, exec, one, quoted, type Rule, run } from './sql.ts'
import { type ConfiguredCollection, knownKey, loadCatalog } from './tables.ts'

// Making, completing and dropping the tables and views of a collection.

/** Why the store cannot keep the rows of a collection: it has another key in the mirror, or a name of its tables is taken. Null: it can. */
export function* refusalOf(dialect: Dialect, { name, key }: ConfiguredCollection): Rule<JobError | null> {
  try {
    const known = yield* knownKey(name)
    if (known) assertSameKey(name, known, key)
    else yield* assertNamesFree(dialect, name)
    return null
  } catch (error) {
    if (error instanceof JobError) return error
    throw error
  }
}

/** Why collections cannot be read into the mirror: each that has rows by another key, or whose tables' names are taken. */
export function* impossibleCollections(
  dialect: Dialect,
  collections: readonly ConfiguredCollection[],
): Rule<string[]> {
  const messages: string[] = []
  for (const collection of collections) {
    const refusal = yield* refusalOf(dialect, collection)
    // Tables without rows are made again with the other key.
    const isRemade = refusal && (yield* knownKey(collection.name)) && (yield* isWithoutRows(collection.name))
    if (refusal && !isRemade) messages.push(refusal.message)
  }
  return messages
}

function* assertNamesFree(dialect: Dialect, name: string): Rule<void> {
  const { longestCollection } = dialect
  if (Buffer.byteLength(name) > longestCollection)
    throw new JobError(
      'CONFIGURATION',
      `the name ${name} is too long for tables of PostgreSQL: give the collection a name of at most ${longestCollection} bytes, and put the address of the list into its path`,
    )
  const found = yield* dialect.relationNamed(namesOfTables(dialect, name))
  if (!found) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror cannot make the tables of ${name}, since it has a ${found.kind} ${found.name} already: give the collection ` +
      'another name (and the address as its path), or rename what is in the way',
  )
}

/** Whether a collection that the mirror knows has neither rows nor superseded versions. */
function* isWithoutRows(collection: string): Rule<boolean> {
  for (const kind of TABLE_KINDS)
    if ((yield* one(`SELECT 1 FROM ${quoted(tableName(collection, kind))} LIMIT 1`)) !== null) return false
  return true
}

/**
 * What has to be done so that a collection has its tables. `remake`: they have another key and no rows. Throws JobError if they have rows by
 * another key.
 */
export function* planTables({ name, key }: ConfiguredCollection): Rule<'nothing' | 'make' | 'remake'> {
  const known = yield* knownKey(name)
  if (!known) return 'make'
  if (JSON.stringify(known) === JSON.stringify(key)) return 'nothing'
  if (!(yield* isWithoutRows(name))) assertSameKey(name, known, key)
  return 'remake'
}

/**
 * Makes the tables and views of a collection, as far as they are missing, and notes its key, which cannot change while it has
 * rows. Throws JobError for another key, and for names that are taken.
 */
export function* ensureTables(alteration: Alteration, collection: ConfiguredCollection): Rule<void> {
  const { dialect } = alteration
  const { name, key } = collection
  const plan = yield* planTables(collection)
  if (plan === 'remake') {
    yield* dropCollection(dialect, name)
    // Open walks know their items by the other key, so they cannot be resumed.
    yield* run(
      "UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = :name AND status = 'open'",
      { name },
    )
  }
  if (plan !== 'nothing') {
    yield* assertNamesFree(dialect, name)
    yield* run('INSERT INTO sync_collections (name, key) VALUES (:name, :key)', {
      name,
      key: JSON.stringify(key),
    })
  }
  const shape = shapeOf(name, yield* loadCatalog(dialect, collection))
  // A user may have dropped one.
  if ((yield* dialect.columnTypes(name)).size === 0) yield* completeTables(dialect, shape)
  yield* makeViews(alteration, shape)
}

/** Drops the views and the tables of a collection, and deletes its columns and its key. */
export function* dropCollection(dialect: Dialect, name: string): Rule<void> {
  yield* dropArrayViews(dialect, name)
  for (const view of [changesViewName(name), versionsViewName(name)]) {
    // Also a view of a user's in its place: it would keep the tables.
    const isView = dialect.areTablesKeptByViews && (yield* dialect.relationNamed([view]))?.kind === 'view'
    if (isView || (yield* dialect.isOwnView(view))) yield* exec([`DROP VIEW ${quoted(view)}`])
  }
  yield* exec(TABLE_KINDS.map((kind) => `DROP TABLE IF EXISTS ${quoted(tableName(name, kind))}`))
  yield* run('DELETE FROM sync_known_columns WHERE collection = :name', { name })
  yield* run('DELETE FROM sync_collections WHERE name = :name', { name })
}

/** Makes the views of a collection, or makes them anew. Leaves what a user has under one of their names. */
export function* makeViews(alteration: Alteration, shape: TableShape): Rule<void> {
  const { dialect, makeView, changes, versions } = alteration
  const { name } = shape
  if (!(yield* isTaken(dialect, changesViewName(name))))
    yield* makeView(changesViewName(name), changes(shape))
  if (!(yield* isTaken(dialect, versionsViewName(name))))
    yield* makeView(versionsViewName(name), versions(shape))
  yield* replaceViews(alteration, shape)
}
