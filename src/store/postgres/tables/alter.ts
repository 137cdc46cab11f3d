import { JobError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { changesViewName, TABLE_KINDS, tableName, versionsViewName } from '../../columns/catalog.ts'
import { selectChanges } from '../../core/changes-view.ts'
import { addColumnSql, isTyped } from '../../core/declarations.ts'
import type { Alteration } from '../../core/fit.ts'
import { exec, one, quoted, type Rule, SQL_TYPES } from '../../core/sql.ts'
import { loadArrayViews } from '../../core/tables.ts'
import { selectVersions } from '../../core/versions-view.ts'
import { POSTGRES } from '../driver.ts'
import { dependentIn, isRefusal } from '../server/errors.ts'
import { ELEMENTS, VIEW_MARK } from './views.ts'

/** Runs in a transaction. */
export const ALTERATION: Alteration = {
  dialect: POSTGRES,
  *alterTables(collection, changes) {
    const types: string[] = []
    const added: string[] = []
    for (const kind of TABLE_KINDS) {
      const table = tableName(collection, kind)
      const known = yield* POSTGRES.columnTypes(table)
      const columns = changes
        .filter(({ column }) => column.role === 'key' || isTyped(kind))
        .map(({ column }) => column)
      const retyped = columns.filter(
        ({ name, type }) => known.has(name) && known.get(name) !== SQL_TYPES[type],
      )
      const actions = retyped.map(
        ({ name, type }) =>
          `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
      )
      if (actions.length > 0) types.push(`ALTER TABLE ${quoted(table)} ${actions.join(', ')}`)
      added.push(
        ...columns
          .filter(({ name }) => !known.has(name))
          .map((column) => addColumnSql(POSTGRES, table, column)),
      )
    }
    // PostgreSQL changes no type of a column that a view reads; who calls this makes our views again.
    if (types.length > 0) yield* naming(exec([...(yield* dropOwnViews(collection)), ...types]))
    yield* exec(added)
  },
  *makeView(view, select) {
    const name = quoted(view)
    const found = yield* one<{ options: string }>(
      "SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS options FROM pg_class WHERE oid = to_regclass(:name::text)",
      { name },
    )
    const mark = `COMMENT ON VIEW ${name} IS '${VIEW_MARK}'`
    // Where only columns are added, who may read the view and what reads it stay.
    yield* exec(['SAVEPOINT in_place'])
    try {
      yield* exec([`CREATE OR REPLACE VIEW ${name}${found?.options ?? ''} AS\n${select}`, mark])
    } catch (error) {
      if (!isRefusal(error)) throw error
      yield* exec(['ROLLBACK TO SAVEPOINT in_place'])
      yield* naming(exec([`DROP VIEW IF EXISTS ${name}`, `CREATE VIEW ${name} AS\n${select}`, mark]))
    }
    yield* exec(['RELEASE SAVEPOINT in_place'])
  },
  elements: ELEMENTS,
  changes: (shape) => selectChanges(POSTGRES, shape),
  versions: selectVersions,
}

function* dropOwnViews(collection: string): Rule<string[]> {
  const arrays = yield* loadArrayViews(POSTGRES, collection)
  const views = [changesViewName(collection), versionsViewName(collection), ...arrays.map(({ name }) => name)]
  const own: string[] = []
  for (const view of views) if (yield* POSTGRES.isOwnView(view)) own.push(`DROP VIEW ${quoted(view)}`)
  return own
}

/** Throws JobError where something of a user is in the way, and names it. */
function* naming(task: Rule<void>): Rule<void> {
  try {
    yield* task
  } catch (error) {
    if (!isRefusal(error)) throw error
    const object = dependentIn(error) ?? 'something else in the database'
    throw new JobError(
      'DATABASE',
      `the tables of this list have to change, and ${printable(object)} depends on them: drop it, sync, and make it again`,
    )
  }
}
