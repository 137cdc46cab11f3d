import { shapeOf } from '../columns/catalog.ts'
import { dropArrayViews, isTaken, replaceViews } from './array-views.ts'
import { CHANGES_COMMENT } from './changes-view.ts'
import { completeTables } from './declarations.ts'
import { type Alteration, type ViewedTable, viewedTable } from './fit.ts'
import { changesViewName } from './names.ts'
import { type Dialect, exec, joinRaw, one, quoted, type Rule, run } from './sql.ts'
import {
  type ConfiguredCollection,
  dropForOtherKey,
  dropTables,
  knownCollections,
  loadCatalog,
  loadColumns,
  makeTables,
  planTables,
} from './tables.ts'

// Making, completing and dropping the tables and views of a collection.

/** Makes the tables and the view of changes of a collection, as far as they are missing. Throws JobError for another key, and for names that are taken. */
export function* ensureTables(alteration: Alteration, collection: ConfiguredCollection): Rule<void> {
  const { dialect } = alteration
  const { name } = collection
  const plan = yield* planTables(collection)
  if (plan === 'remake') {
    yield* dropAllViews(dialect, name)
    yield* dropForOtherKey(name)
  }
  if (plan !== 'nothing') yield* makeTables(dialect, collection)
  // A user may have dropped one.
  else if ((yield* dialect.columnTypes(name)).size === 0)
    yield* completeTables(dialect, shapeOf(name, yield* loadCatalog(dialect, collection)))
  yield* ensureChangesView(alteration, viewedTable(dialect, collection))
}

/** Drops the tables and views of a collection, and deletes its columns and its key. */
export function* dropCollection(dialect: Dialect, name: string): Rule<void> {
  yield* dropAllViews(dialect, name)
  yield* dropTables(name)
}

function* dropAllViews(dialect: Dialect, name: string): Rule<void> {
  yield* dropArrayViews(dialect, name)
  const changes = changesViewName(name)
  // Also where a user has put a comment of his own on it, or a view of his own in its place: it would keep the tables.
  const isView = dialect.areTablesKeptByViews && (yield* dialect.relationNamed([changes]))?.kind === 'view'
  if (isView || (yield* dialect.isOwnView(changes))) yield* exec([`DROP VIEW ${quoted(changes)}`])
}

/** Makes the view of changes, or makes it anew. Leaves what a user has under its name. */
export function* ensureChangesView(
  { dialect, makeView, changes }: Alteration,
  shape: ViewedTable,
): Rule<void> {
  const name = changesViewName(shape.name)
  if (yield* isTaken(dialect, name)) return
  const says = `${CHANGES_COMMENT}${shape.name}, of history and live rows.`
  yield* makeView(name, changes(shape), dialect.comment(`VIEW ${quoted(name)}`, says))
}

/** Adds what the tables and views of a mirror of an earlier version lack, also for collections that the configuration no longer names. */
export function* completeCollections(alteration: Alteration): Rule<void> {
  const { dialect } = alteration
  for (const collection of yield* knownCollections()) {
    const { name } = collection
    const shape = shapeOf(name, yield* loadCatalog(dialect, collection))
    yield* completeTables(dialect, shape)
    yield* ensureChangesView(alteration, shape)
    yield* markWideTexts(alteration, shape)
    yield* replaceViews(alteration, shape)
  }
}

/** Marks the columns that hold texts that read like lists. */
function* markWideTexts(
  { dialect, beginsLikeList, hasText }: Alteration,
  { name, keyColumns }: ViewedTable,
): Rule<void> {
  const columns = yield* loadColumns(dialect, name)
  const texts = columns.filter(({ role, type }) => role !== 'key' && type === 'TEXT')
  if (texts.length === 0) return
  // First those that begin like one: most columns have none.
  const begin = texts.map(
    (column, index) => `max(CASE WHEN ${beginsLikeList(column.name)} THEN 1 END) AS c${index}`,
  )
  const found = yield* one<Record<string, number | null>>(
    `SELECT ${begin.join(', ')} FROM ${quoted(name)} AS t`,
  )
  for (const { name: column, path } of texts.filter((_, index) => found?.[`c${index}`] === 1))
    yield* run(
      `
        UPDATE sync_known_columns
        SET wide = 1
        WHERE collection = :name AND "column" = :column AND EXISTS (
          SELECT 1
          FROM ${quoted(name)} AS t ${joinRaw(dialect, name, keyColumns)}
          WHERE ${beginsLikeList(column)} AND ${hasText(path)}
        )
      `,
      { name, column },
    )
}
