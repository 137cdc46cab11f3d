import { CHANGES_END, EVENT_COLUMNS, eventKeyNames, SEQ, selectChanges } from '../../columns/changes-view.ts'
import { tableName } from '../../core/sql.ts'
import { SQLITE } from '../driver.ts'
import { type Connection, quoted } from '../sql.ts'

/** In the view's text, to tell it from a view of a user's. */
const MARK = '/* made by admin-mirror */'

/** What the view of a collection depends on; it never changes while the collection has rows. */
interface Shape {
  name: string
  keyColumns: readonly string[]
}

/** Creates the view, or replaces one of another version. Returns false where the name is a user's. */
export function ensureChangesView(connection: Connection, shape: Shape): boolean {
  const found = findView(connection, shape.name)
  const wanted = changesViewSql(shape)
  if (found?.sql === wanted) return true
  if (found && !isOurs(found)) return false
  if (found) connection.exec(`DROP VIEW ${quoted(shape.name + CHANGES_END)}`)
  connection.exec(wanted)
  return true
}

export function dropChangesView(connection: Connection, collection: string): void {
  const found = findView(connection, collection)
  if (found && isOurs(found)) connection.exec(`DROP VIEW ${quoted(collection + CHANGES_END)}`)
}

interface Found {
  type: string
  sql: string | null
}

function findView(connection: Connection, collection: string): Found | undefined {
  const find = connection.prepare('SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE')
  return find.get(collection + CHANGES_END) as Found | undefined
}

function isOurs({ type, sql }: Found): boolean {
  return type === 'view' && sql?.includes(MARK) === true
}

function changesViewSql({ name, keyColumns }: Shape): string {
  const raw = quoted(tableName(name, 'raw'))
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const names = ['_organization_id', ...eventKeyNames(keyColumns)].map(quoted)
  const select = selectChanges({
    raw,
    history: quoted(tableName(name, 'history')),
    keys,
    names,
    order: '_rowid_',
    seq: SQLITE.seqOf,
  })
  // The first SELECT declares the types. SQLite takes no expression for an INTEGER, only a column.
  const columns = [
    `"_changed_seq" AS ${quoted(SEQ)}`,
    ...keys.map((key, index) => `${key} AS ${names[index]}`),
    ...EVENT_COLUMNS.map((column) => `CAST(NULL AS TEXT) AS ${quoted(column)}`),
  ]
  return `CREATE VIEW ${quoted(name + CHANGES_END)} AS ${MARK}
SELECT ${columns.join(', ')} FROM ${raw} WHERE _rowid_ = NULL
UNION ALL
${select}`
}
