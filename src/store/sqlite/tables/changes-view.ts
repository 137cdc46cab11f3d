import { CHANGES_END, selectChanges } from '../../columns/changes-view.ts'
import { eventKeyNames } from '../../columns/event-keys.ts'
import { type Connection, quoted } from '../sql.ts'
import { tableName } from './declarations.ts'

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
  const select = selectChanges({
    raw: quoted(tableName(name, 'raw')),
    history: quoted(tableName(name, 'history')),
    keys: ['_organization_id', ...keyColumns].map(quoted),
    names: ['_organization_id', ...eventKeyNames(keyColumns)].map(quoted),
    order: '_rowid_',
  })
  return `CREATE VIEW ${quoted(name + CHANGES_END)} AS ${MARK}
${select}`
}
