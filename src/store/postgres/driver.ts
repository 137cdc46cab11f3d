import { all, type Dialect, quoted, type Rule, run, type Values, withParameters } from '../core/sql.ts'
import { POSTGRES_LIMITS, type Sql, storable } from './sql.ts'
import { SQL_TYPES } from './tables/shape.ts'
import { VIEW_MARK } from './tables/view.ts'

export const POSTGRES: Dialect = {
  limits: POSTGRES_LIMITS,
  rowId: 'ctid',
  rowIdType: 'tid',
  sequence: 'sequence',
  join: 'JOIN',
  later: 'greatest',
  // Ids of rejects begin with NUL, which PostgreSQL reads from no JSON. No key is like the rest of one.
  each: (list, alias) =>
    `json_array_elements_text(replace(${list}, '"\\u0000', '"')::json) AS ${alias} (value)`,
  idOfRow({ keyColumns }, row) {
    const texts = keyColumns.map((name) => `${row}.${quoted(name)}::text`)
    if (texts.length === 1) return texts.join()
    return `'[' || ${texts.map((text) => `to_json(${text})::text`).join(` || ',' || `)} || ']'`
  },
  hasId({ keyColumns, keyTypes }, row, id) {
    return keyColumns
      .map((name, index) => {
        const part = keyColumns.length === 1 ? id : `(${id}::json ->> ${index})`
        return `${row}.${quoted(name)} = ${part}::${SQL_TYPES[keyTypes[index] ?? 'TEXT']}`
      })
      .join(' AND ')
  },
  *isOwnView(view) {
    const found = yield* all(
      `SELECT 1 FROM pg_class WHERE oid = to_regclass(:name::text) AND relkind = 'v' AND strpos(pg_get_viewdef(oid), '${VIEW_MARK}') > 0`,
      { name: quoted(view) },
    )
    return found.length > 0
  },
  *upsert(table, columns, key, rows) {
    const names = Object.keys(columns).map(quoted)
    const lines = Object.entries(columns).map(([name, type]) => `${quoted(name)} ${type}`)
    yield* run(
      `
        INSERT INTO ${table} (${names.join(', ')})
        SELECT ${names.join(', ')} FROM json_to_recordset(:rows::json) AS line (${lines.join(', ')})
        ON CONFLICT (${key.map(quoted).join(', ')}) DO UPDATE
        SET ${names.map((name) => `${name} = excluded.${name}`).join(', ')}
      `,
      // Each text before it is part of the JSON, where NUL is written otherwise.
      {
        rows: JSON.stringify(rows, (_, value: unknown) =>
          typeof value === 'string' ? storable(value) : value,
        ),
      },
    )
  },
}

/** What runs single statements, in a transaction or without one. */
export type Statements = Pick<Sql, 'rows' | 'count'>

/** Runs the statements of a rule, each after the answer of the one before. */
export async function runRule<T>(sql: Statements, rule: Rule<T>): Promise<T> {
  let next = rule.next()
  while (!next.done) {
    const { text, values, wants } = next.value
    const { numbered, names } = numberedOf(text)
    next = rule.next(
      await sql[wants](
        numbered,
        names.map((name) => storableValue(values, name)),
      ),
    )
  }
  return next.value
}

interface Numbered {
  numbered: string
  names: readonly string[]
}

const known = new Map<string, Numbered>()

/** The text with `$1` for the first parameter, and the parameters' names in that order. */
function numberedOf(text: string): Numbered {
  const before = known.get(text)
  if (before) return before
  const names: string[] = []
  const numbered = withParameters(text, (name, type) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}${type === undefined ? '' : `::${type}`}`
  })
  const found = { numbered, names }
  known.set(text, found)
  return found
}

function storableValue(values: Values, name: string): string | number | null {
  const value = values[name]
  if (value === undefined) throw new Error(`a statement has no value for :${name}`)
  return typeof value === 'string' ? storable(value) : value
}
