import type { ColumnChange } from '../../columns/column.ts'
import { addColumnSql } from '../../core/declarations.ts'
import type { Alteration, ViewedTable } from '../../core/fit.ts'
import { changesViewName, KINDS, tableName } from '../../core/names.ts'
import { exec, one, quoted, type Rule, SQL_TYPES } from '../../core/sql.ts'
import { POSTGRES } from '../driver.ts'
import { changingTypes, DependentError, tried, withoutDependents } from './dependents.ts'
import { changesSelect } from './shape.ts'
import { hasTextSql, viewComment, viewSelect } from './view.ts'

/** Runs in a transaction. */
export const ALTERATION: Alteration = {
  dialect: POSTGRES,
  *alterTables({ name }, changes) {
    const columns = changes.flatMap(({ kind, column }) =>
      kind === 'type' && column.role !== 'key' ? [column] : [],
    )
    if (columns.length > 0) {
      const names = columns.map((column) => column.name)
      const obstacle = yield* changingTypes(tablesOf(name), names, [alterSql(name, columns)])
      if (obstacle !== null) return { columns: names, obstacle }
    }
    const added = changes.filter(({ kind, column }) => kind === 'add' && column.role !== 'key')
    yield* exec(added.flatMap(({ column }) => addColumnSql(POSTGRES, name, column)))
    yield* changeKeys(name, changes)
    return null
  },
  furtherViews: [],
  makeView,
  replaceView: ({ name: table, keyColumns }, view) =>
    makeView(view.name, viewSelect(table, keyColumns, view), viewComment(table, view)),
  *replaceChangesView(shape) {
    const view = changesViewName(shape.name)
    // By the comment that ours has.
    const ours = yield* one(
      "SELECT 1 FROM pg_class WHERE oid = to_regclass(:view::text) AND relkind = 'v' AND obj_description(oid, 'pg_class') = :comment",
      { view: quoted(view), comment: commentOfChanges(shape.name) },
    )
    if (!ours) return
    yield* makeChangesView(shape)
  },
  beginsLikeList: (column) => `t.${quoted(column)} ~ '^[ \\t\\n\\r]*\\['`,
  hasText: hasTextSql,
  tried,
}

export function makeChangesView({ name, keyColumns }: ViewedTable): Rule<void> {
  const view = changesViewName(name)
  return makeView(
    view,
    changesSelect(name, keyColumns),
    POSTGRES.comment(`VIEW ${quoted(view)}`, commentOfChanges(name)),
  )
}

function commentOfChanges(name: string): string {
  return `One row an event of ${name}, of history and live rows.`
}

/** Leaves all that depends on the view as it is where only columns are added; else views of users that read it are made again with it. */
function* makeView(view: string, select: string, comments: readonly string[]): Rule<void> {
  const name = quoted(view)
  const found = yield* one<{ options: string }>(
    "SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS options FROM pg_class WHERE oid = to_regclass(:name::text)",
    { name },
  )
  const inPlace = `CREATE OR REPLACE VIEW ${name}${found?.options ?? ''} AS\n${select}`
  if ((yield* tried(() => exec([inPlace, ...comments]))) === null) return
  const anew = [`DROP VIEW IF EXISTS ${name}`, `CREATE VIEW ${name} AS\n${select}`, ...comments]
  yield* withoutDependents([view], exec(anew))
}

function tablesOf(collection: string): string[] {
  return KINDS.map((kind) => tableName(collection, kind))
}

/** All three tables have the key columns, made as INTEGER before their type was known. A key has no column beside it for what does not fit. */
function* changeKeys(collection: string, changes: readonly ColumnChange[]): Rule<void> {
  const keys = changes.map(({ column }) => column).filter(({ role }) => role === 'key')
  if (keys.length === 0) return
  const statements: string[] = []
  for (const table of tablesOf(collection)) {
    const types = yield* POSTGRES.columnTypes(table)
    const due = keys.filter(({ name, type }) => types.get(name) !== SQL_TYPES[type])
    if (due.length > 0) statements.push(alterSql(table, due))
  }
  if (statements.length === 0) return
  const names = keys.map(({ name }) => name)
  const obstacle = yield* changingTypes(tablesOf(collection), names, statements)
  if (obstacle !== null) throw new DependentError(obstacle)
}

function alterSql(table: string, columns: readonly ColumnChange['column'][]): string {
  const changes = columns.map(
    ({ name, type }) =>
      `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
  )
  return `ALTER TABLE ${quoted(table)} ${changes.join(', ')}`
}
