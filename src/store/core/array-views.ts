import type { Column, ColumnType } from '../columns/column.ts'
import { type ArrayView, parentNames } from '../columns/elements.ts'
import type { Alteration, ViewedTable } from './fit.ts'
import { type Dialect, exec, joinRaw, quoted, type Rule, run, SQL_TYPES } from './sql.ts'
import { loadArrayViews, OF_VIEWS } from './tables.ts'

// `orders__items`: one row for each element of an array that is an object.

/** How a database reads the elements of a list. */
export interface ElementSql {
  /** An expression for the place of `e` in its list, from 0. */
  index: string
  /**
   * SQL after the typed table `t`: joins the elements that are objects, as `e`. A column that is null, or text other than a list, has none.
   * `sentAt`: where the list is in the item `r`, if only what came as a list is one.
   */
  from(column: string, sentAt: string | null): string
  /** An expression for a value of `e` that fits a column of this type, as `fittingValue` of what `asRead` returns; null if it does not fit. */
  fitting(type: ColumnType, path: string): string
  /** The same for its text, whatever it is; null for an object. */
  text(path: string): string
}

/** Makes the view of an array, or makes it anew. */
export function* makeArrayView(alteration: Alteration, table: ViewedTable, view: ArrayView): Rule<void> {
  const { dialect, makeView } = alteration
  const says = `One row for each element of ${view.arrayColumn} of ${table.name}.`
  // A user may have put a comment of his own on a view that is there.
  const isNew = (yield* dialect.relationNamed([view.name])) === null
  const comments = isNew ? dialect.comment(`VIEW ${quoted(view.name)}`, says) : []
  yield* makeView(view.name, selectElements(alteration, table, view), comments)
}

function selectElements(
  { dialect, elements }: Alteration,
  { name: table, keyColumns }: ViewedTable,
  view: ArrayView,
): string {
  const parents = parentNames(keyColumns, dialect.limits)
  const columns = [
    ...keyColumns.map((key, index) => `t.${quoted(key)} AS ${quoted(parents[index] ?? '')}`),
    `${elements.index} AS "_index"`,
    ...view.elements.map((column) => {
      const type = dialect.declared(SQL_TYPES[column.type])
      return `CAST(${valueSql(elements, column, view.elements)} AS ${type}) AS ${quoted(column.name)}`
    }),
  ]
  const join = view.sentAt === null ? '' : ` ${joinRaw(dialect, table, keyColumns)}`
  return `${[BEGINNING, ...columns].join(',\n  ')}
FROM ${quoted(table)} AS t${join}${elements.from(`t.${quoted(view.arrayColumn)}`, view.sentAt)}`
}

/** How the view begins in each version of the program: by this a file tells ours from those of users. */
export const BEGINNING = 'SELECT\n  t."_organization_id" AS "_organization_id"'

function valueSql(
  { fitting, text }: ElementSql,
  { path, type, role }: Column,
  elements: readonly Column[],
): string {
  if (role === 'text') {
    const main = elements.find((other) => other.role === 'value' && other.path === path)
    return `CASE WHEN ${fitting(main?.type ?? 'TEXT', path)} IS NULL THEN ${text(path)} END`
  }
  // An earlier version had booleans in columns of texts, where they stay until another one comes.
  const isAlone = !elements.some((other) => other.role === 'text' && other.path === path)
  return type === 'TEXT' && isAlone ? text(path) : fitting(type, path)
}

/** Makes the views of a collection that are ours again. Returns how many. */
export function* replaceViews(alteration: Alteration, table: ViewedTable): Rule<number> {
  let replaced = 0
  for (const view of yield* loadArrayViews(alteration.dialect, table.name)) {
    if (yield* isTaken(alteration.dialect, view.name)) continue
    yield* makeArrayView(alteration, table, view)
    replaced++
  }
  return replaced
}

/** Drops the views of a collection's arrays that are ours, and deletes their columns. */
export function* dropArrayViews(dialect: Dialect, collection: string): Rule<void> {
  for (const { name } of yield* loadArrayViews(dialect, collection))
    if (!(yield* isTaken(dialect, name))) yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`])
  yield* run(`DELETE FROM sync_view_columns WHERE ${OF_VIEWS}`, { collection })
}

/** A table or view that we did not create belongs to a user, who may have put it in the place of ours. */
export function* isTaken(dialect: Dialect, name: string): Rule<boolean> {
  return (yield* dialect.relationNamed([name])) !== null && !(yield* dialect.isOwnView(name))
}
