import type { Statement as Prepared } from 'better-sqlite3'
import { SQLITE_LIMITS } from '../columns/column.ts'
import { all, type Dialect, quoted, type Rule, run, type Statement, withParameters } from '../core/sql.ts'
import type { Connection } from './sql.ts'
import { isViewSql } from './tables/view.ts'

export const SQLITE: Dialect = {
  limits: SQLITE_LIMITS,
  rowId: '_rowid_',
  rowIdType: 'bigint',
  sequence: '_rowid_',
  // With a plain join SQLite may read the whole second table.
  join: 'CROSS JOIN',
  later: 'max',
  each: (list, alias) => `json_each(${list}) AS ${alias}`,
  idOfRow({ keyColumns }, row) {
    const texts = keyColumns.map((name) => `CAST(${row}.${quoted(name)} AS TEXT)`)
    return texts.length === 1 ? texts.join() : `json_array(${texts.join(', ')})`
  },
  hasId({ keyColumns, keyTypes }, row, id) {
    const part = (index: number) => (keyColumns.length === 1 ? id : `json_extract(${id}, '$[${index}]')`)
    return keyColumns
      .map((name, index) => `${row}.${quoted(name)} = CAST(${part(index)} AS ${keyTypes[index]})`)
      .join(' AND ')
  },
  *isOwnView(view) {
    const found = yield* all<{ sql: string }>(
      "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = :view COLLATE NOCASE",
      { view },
    )
    return found.some(({ sql }) => isViewSql(sql, view))
  },
  *upsert(table, columns, key, rows) {
    const names = Object.keys(columns)
    const text = `
      INSERT INTO ${table} (${names.map(quoted).join(', ')})
      VALUES (${names.map((_, index) => `:c${index}`).join(', ')})
      ON CONFLICT (${key.map(quoted).join(', ')}) DO UPDATE
      SET ${names.map((name) => `${quoted(name)} = excluded.${quoted(name)}`).join(', ')}
    `
    for (const row of rows)
      yield* run(text, Object.fromEntries(names.map((name, index) => [`c${index}`, row[name] ?? null])))
  },
}

/** Types of parameters; all others are texts. */
const TYPES: Record<string, string> = { bigint: 'INTEGER' }

/** Statements by their text, as long as their connection is open. */
const prepared = new WeakMap<Connection, Map<string, Prepared>>()

/** Runs the statements of a rule, all before it returns. Call it inside a transaction if the rule writes. */
export function runRule<T>(connection: Connection, rule: Rule<T>): T {
  let next = rule.next()
  while (!next.done) next = rule.next(runStatement(connection, next.value))
  return next.value
}

function runStatement(connection: Connection, { text, values, wants }: Statement): unknown {
  const statement = prepare(connection, text)
  return wants === 'rows' ? statement.all(values) : statement.run(values).changes
}

function prepare(connection: Connection, text: string): Prepared {
  const known = prepared.get(connection) ?? new Map<string, Prepared>()
  prepared.set(connection, known)
  const statement = known.get(text) ?? connection.prepare(withParameters(text, parameter))
  known.set(text, statement)
  return statement
}

/**
 * Where no unique index settles the plan, SQLite compiles a statement again for each value bound to a bare parameter, which takes
 * ten times as long as the query. A CAST prevents that.
 */
function parameter(name: string, type: string | undefined): string {
  return type === undefined ? `:${name}` : `CAST(:${name} AS ${TYPES[type] ?? 'TEXT'})`
}
