import { JobError } from '../../errors.ts'
import { printable } from '../../text.ts'
import type { Column } from '../columns/column.ts'
import { exec, one, quoted, type Rule, SQL_TYPES } from '../core/sql.ts'
import { dependentIn, isRefusal } from './server/errors.ts'

// How tables that have rows, and views that somebody may read, are changed on a server.

/** PostgreSQL changes no type of a column that a view reads. */
export function* retype(
  tables: readonly string[],
  columns: readonly Column[],
  views: readonly string[],
): Rule<void> {
  const actions = columns.map(
    ({ name, type }) =>
      `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
  )
  const changes = tables.map((table) => `ALTER TABLE ${quoted(table)} ${actions.join(', ')}`)
  yield* naming(exec([...views.map((view) => `DROP VIEW IF EXISTS ${quoted(view)}`), ...changes]))
}

export function* makeView(view: string, select: string): Rule<void> {
  const name = quoted(view)
  const found = yield* one<{ options: string }>(
    "SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS options FROM pg_class WHERE oid = to_regclass(:name::text)",
    { name },
  )
  // Where only columns are added, who may read the view and what reads it stay.
  yield* exec(['SAVEPOINT in_place'])
  try {
    yield* exec([`CREATE OR REPLACE VIEW ${name}${found?.options ?? ''} AS\n${select}`])
  } catch (error) {
    if (!isRefusal(error)) throw error
    yield* exec(['ROLLBACK TO SAVEPOINT in_place'])
    yield* naming(exec([`DROP VIEW IF EXISTS ${name}`, `CREATE VIEW ${name} AS\n${select}`]))
  }
  yield* exec(['RELEASE SAVEPOINT in_place'])
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
