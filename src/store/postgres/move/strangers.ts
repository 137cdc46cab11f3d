import { printable } from '../../../text.ts'
import { namesOfTables } from '../../core/declarations.ts'
import { SQLITE } from '../../sqlite/driver.ts'
import type { Connection } from '../../sqlite/sql.ts'
import { OWN_TABLES } from './own-tables.ts'

/** What users have put into the file, in words: a move leaves it there. */
export function strangersIn(connection: Connection): string[] {
  const found = connection
    .prepare(
      "SELECT type, name, tbl_name AS \"of\" FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY type, name",
    )
    .all() as { type: string; name: string; of: string }[]
  const collections = connection
    .prepare('SELECT name FROM sync_collections ORDER BY name')
    .pluck()
    .all() as string[]
  const views = connection.prepare('SELECT DISTINCT view FROM sync_view_columns').pluck().all() as string[]
  const ours = new Set([...OURS, ...views, ...collections.flatMap((name) => namesOfTables(SQLITE, name))])
  return [
    ...found
      .filter(({ name }) => !ours.has(name))
      // Indexes of our own tables, in this version or an earlier one.
      .filter(
        ({ type, name, of }) => !(type === 'index' && name.startsWith('sync_') && of.startsWith('sync_')),
      )
      .map(({ type, name }) => `the ${type} ${printable(name, 200)}`),
    ...collections.flatMap((collection) =>
      addedColumns(connection, collection).map(
        (column) => `the column ${printable(`${collection}.${column}`, 200)}`,
      ),
    ),
  ]
}

const OURS = [
  ...OWN_TABLES.map(({ name }) => name),
  'sync_columns',
  'sync_known_columns',
  'sync_column_counts',
  'sync_view_columns',
  'sync_settings',
  'sync_status',
  'sync_help',
]

/** Columns that somebody has added to a typed table. */
function addedColumns(connection: Connection, collection: string): string[] {
  const known = connection
    .prepare('SELECT "column" FROM sync_columns WHERE collection = ?')
    .pluck()
    .all(collection)
  const columnsOf = connection.prepare('SELECT name FROM pragma_table_xinfo(?)').pluck()
  const raw = columnsOf.all(`${collection}_raw`)
  return (columnsOf.all(collection) as string[]).filter(
    (name) => !known.includes(name) && !raw.includes(name),
  )
}
