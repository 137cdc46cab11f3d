import { completeTables } from './declarations.ts'
import { type Alteration, replaceViews, type ViewedTable, viewedTable } from './fit.ts'
import { all, joinRaw, one, quoted, type Rule, run } from './sql.ts'
import { loadColumns } from './tables.ts'

/** Gives the collections of a mirror of an earlier version what their tables and views have not, also those that the configuration does not name any more. */
export function* completeCollections(alteration: Alteration): Rule<void> {
  const { dialect, replaceChangesView } = alteration
  const known = yield* all<{ name: string; key: string }>('SELECT name, key FROM sync_collections')
  for (const { name, key } of known) {
    if ((yield* dialect.columnTypes(name)).size === 0) continue
    const shape = viewedTable(dialect, { name, key: JSON.parse(key) as string[] })
    yield* completeTables(dialect, shape)
    yield* replaceChangesView(shape)
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
