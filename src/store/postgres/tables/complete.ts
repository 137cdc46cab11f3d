import type { TableShape } from '../../columns/catalog.ts'
import { splitKey } from '../../columns/catalog.ts'
import { completeTables } from '../../core/declarations.ts'
import { loadColumns } from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { quoted, type Sql } from '../sql.ts'
import { withoutDependents } from './dependents.ts'
import { isTaken, replaceView } from './fit.ts'
import { loadViews } from './records.ts'
import { changesViewName, changesViewSql, commentOfChanges, keyNames } from './shape.ts'
import { hasTextSql, joinRaw } from './view.ts'

/** Gives the collections of a schema of an earlier version what their tables and views have not, with the grants of the views as they were. */
export async function completeCollections(sql: Sql): Promise<void> {
  const known = await sql.rows<{ name: string; key: string }>('SELECT name, key FROM sync_collections')
  for (const { name, key } of known) {
    const keyColumns = keyNames(splitKey(JSON.parse(key) as string[]))
    const shape = { name, keyColumns }
    await runRule(sql, completeTables(POSTGRES, shape))
    await replaceChangesView(sql, shape)
    await markWideTexts(sql, name, keyColumns)
    for (const view of (await loadViews(sql, name)).values())
      if (!(await isTaken(sql, view.name))) await replaceView(sql, name, keyColumns, view)
  }
}

/** A condition: the column holds a text that begins like a list. */
function readsLikeList(column: string): string {
  return `t.${quoted(column)} ~ '^[ \\t\\n\\r]*\\['`
}

/** Marks the columns that hold texts that read like lists. */
async function markWideTexts(sql: Sql, name: string, keyColumns: readonly string[]): Promise<void> {
  const texts = (await runRule(sql, loadColumns(POSTGRES, name))).filter(
    ({ role, type }) => role !== 'key' && type === 'TEXT',
  )
  if (texts.length === 0) return
  // First those that begin like one: most columns have none.
  const [found = {}] = await sql.rows<Record<string, boolean | null>>(
    `SELECT ${texts.map((column, index) => `bool_or(${readsLikeList(column.name)}) AS c${index}`).join(', ')} FROM ${quoted(name)} AS t`,
  )
  for (const { name: column, path } of texts.filter((_, index) => found[`c${index}`] === true))
    await sql.rows(
      `
        UPDATE sync_known_columns
        SET wide = 1
        WHERE collection = $1 AND "column" = $2 AND EXISTS (
          SELECT 1
          FROM ${quoted(name)} AS t ${joinRaw(name, keyColumns)}
          WHERE ${readsLikeList(column)} AND ${hasTextSql(path)}
        )
      `,
      [name, column],
    )
}

/** Leaves a view of that name that a user has made. */
async function replaceChangesView(sql: Sql, shape: Pick<TableShape, 'name' | 'keyColumns'>): Promise<void> {
  const view = changesViewName(shape.name)
  if (!(await isOurs(sql, shape.name, view))) return
  await withoutDependents(sql, [view], async () => {
    await sql.exec([`DROP VIEW ${quoted(view)}`, ...changesViewSql(shape)].join(';\n'))
  })
}

/** By the comment that ours has. */
async function isOurs(sql: Sql, name: string, view: string): Promise<boolean> {
  const found = await sql.rows(
    "SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'v' AND obj_description(oid, 'pg_class') = $2",
    [quoted(view), commentOfChanges(name)],
  )
  return found.length > 0
}
