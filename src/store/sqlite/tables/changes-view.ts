import { EVENT_COLUMNS, eventKeyNames, SEQ, selectChanges } from '../../columns/changes-view.ts'
import type { ViewedTable } from '../../core/fit.ts'
import { changesViewName, tableName } from '../../core/names.ts'
import { exec, one, quoted, type Rule } from '../../core/sql.ts'
import { SQLITE } from '../driver.ts'

/** In the view's text, to tell it from a view of a user's. */
const MARK = '/* made by admin-mirror */'

/** Creates the view, or replaces one of another version. Returns false where the name is a user's. */
export function* ensureChangesView(shape: ViewedTable): Rule<boolean> {
  const found = yield* findView(shape.name)
  const wanted = changesViewSql(shape)
  if (found?.sql === wanted) return true
  if (found && !isOurs(found)) return false
  yield* exec([...(found ? [dropSql(shape.name)] : []), wanted])
  return true
}

export function* dropChangesView(collection: string): Rule<void> {
  const found = yield* findView(collection)
  if (found && isOurs(found)) yield* exec([dropSql(collection)])
}

function dropSql(collection: string): string {
  return `DROP VIEW ${quoted(changesViewName(collection))}`
}

interface Found {
  type: string
  sql: string | null
}

function findView(collection: string): Rule<Found | null> {
  const name = changesViewName(collection)
  return one('SELECT type, sql FROM sqlite_schema WHERE name = :name COLLATE NOCASE', { name })
}

function isOurs({ type, sql }: Found): boolean {
  return type === 'view' && sql?.includes(MARK) === true
}

function changesViewSql({ name, keyColumns }: ViewedTable): string {
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
  return `CREATE VIEW ${quoted(changesViewName(name))} AS ${MARK}
SELECT ${columns.join(', ')} FROM ${raw} WHERE _rowid_ = NULL
UNION ALL
${select}`
}
