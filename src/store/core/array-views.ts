import type { ColumnType } from '../columns/column.ts'
import { type ArrayView, parentNames } from '../columns/elements.ts'
import type { Alteration, ViewedTable } from './fit.ts'
import { type Dialect, exec, quoted, type Rule, run, SQL_TYPES } from './sql.ts'
import { loadArrayViews, OF_VIEWS } from './tables.ts'

// `orders__items`: one row for each element of an array that is an object.

/** How a database reads the elements of a list. */
export interface ElementSql {
  /** An expression for the place of `e` in its list, from 0. */
  index: string
  /** SQL after the typed table `t`: joins the elements that are objects, as `e`. A column that is null, or text other than a list, has none. */
  from(column: string): string
  /** An expression for a value of `e` in a column of this type; null if it is of another class. */
  value(type: ColumnType, path: string): string
}

/** Makes the view of an array, or makes it anew. */
export function* makeArrayView(alteration: Alteration, table: ViewedTable, view: ArrayView): Rule<void> {
  yield* alteration.makeView(view.name, selectElements(alteration, table, view))
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
    ...view.elements.map(
      ({ name, type, path }) =>
        `CAST(${elements.value(type, path)} AS ${dialect.declared(SQL_TYPES[type])}) AS ${quoted(name)}`,
    ),
  ]
  return `${[BEGINNING, ...columns].join(',\n  ')}
FROM ${quoted(table)} AS t${elements.from(`t.${quoted(view.arrayColumn)}`)}`
}

/** How the view begins: by this a file tells ours from those of users. */
export const BEGINNING = 'SELECT\n  t."_organization_id" AS "_organization_id"'

/** Makes the views of a collection that are ours again. */
export function* replaceViews(alteration: Alteration, table: ViewedTable): Rule<void> {
  for (const view of yield* loadArrayViews(alteration.dialect, table.name))
    if (!(yield* isTaken(alteration.dialect, view.name))) yield* makeArrayView(alteration, table, view)
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
