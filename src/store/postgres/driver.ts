import { JobError } from '../../errors.ts'
import { printable } from '../../text.ts'
import { type Column, parseSqlitePath } from '../columns/column.ts'
import {
  type Dialect,
  type ElementSql,
  exec,
  literal,
  one,
  quoted,
  type Rule,
  run,
  SQL_TYPES,
} from '../core/sql.ts'
import { isRefusal } from './errors.ts'
import { POSTGRES_LIMITS, storable, storableJson } from './storable.ts'

/** The server's time, by an answer that says it. */
export const SERVER_TIME = 'extract(epoch FROM clock_timestamp())::double precision * 1000'

/** Numbers that numeric holds without an error, and double precision too, up to the greatest. */
const NUMBER = String.raw`^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE]([+-]?[12]?[0-9]{1,2}|\+?30[0-8]))?$`
const GREATEST = '1.7976931348623157e308'
/** Texts that write out a number. */
const WHOLE_TEXT = '^(0|-?[1-9][0-9]{0,18})$'
const TEXT = String.raw`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`

const ELEMENTS: ElementSql = {
  index: 'e.ordinal - 1',
  from: (
    column,
  ) => ` CROSS JOIN LATERAL json_array_elements(json_list(${column})) WITH ORDINALITY AS e (value, ordinal)
WHERE json_typeof(e.value) = 'object'`,
  value(type, path) {
    const names = `ARRAY[${parseSqlitePath(path)
      .map((name) => literal(storable(name)))
      .join(', ')}]::text[]`
    const [at, text] = [`e.value #> ${names}`, `(e.value #>> ${names})`]
    const kind = `json_typeof(${at})`
    if (type === 'TEXT')
      return `CASE ${kind} WHEN 'string' THEN ${text} WHEN 'number' THEN ${text} WHEN 'array' THEN (${at})::text END`
    const number = `${text}::numeric`
    const isNumber = (pattern: string) =>
      `${kind} = 'number' AND ${text} ~ '${NUMBER}' OR ${kind} = 'string' AND ${text} ~ '${pattern}'`
    const isSafe = `${number} BETWEEN -9007199254740991 AND 9007199254740991`
    if (type === 'INTEGER')
      return `CASE WHEN ${kind} = 'boolean' THEN (${text} = 'true')::int WHEN ${isNumber(WHOLE_TEXT)}
    THEN CASE WHEN ${number} = trunc(${number}) AND ${number} BETWEEN -9223372036854775808 AND 9223372036854775807 AND (${isSafe} OR ${text} !~ '[.eE]') THEN ${number} END END`
    return `CASE WHEN ${isNumber(TEXT)} AND length(${text}) <= 15
    THEN CASE WHEN ${isSafe} OR ${text} ~ '[.eE]' AND abs(${number}) <= ${GREATEST} THEN ${text}::double precision END END`
  },
}

export const POSTGRES: Dialect = {
  limits: POSTGRES_LIMITS,
  now: SERVER_TIME,
  // Ids of rejects begin with NUL, which PostgreSQL reads from no JSON. No key is like the rest of one.
  each: (list, alias) =>
    `json_array_elements_text(replace(${list}, '"\\u0000', '"')::json) AS ${alias} (value)`,
  idOfRow(keys, row) {
    const texts = keys.map(({ name }) => `${row}.${quoted(name)}::text`)
    if (texts.length === 1) return texts.join()
    return `'[' || ${texts.map((text) => `to_json(${text})::text`).join(` || ',' || `)} || ']'`
  },
  hasId(keys, row, id) {
    return keys
      .map(({ name, type }, index) => {
        const part = keys.length === 1 ? id : `(${id}::json ->> ${index})`
        return `${row}.${quoted(name)} = ${part}::${SQL_TYPES[type]}`
      })
      .join(' AND ')
  },
  stored(row) {
    // The strings of a list have to be storable once a view reads them.
    for (const { column } of row.arrays) row.values.set(column, storableJson(String(row.values.get(column))))
    return row
  },
  lock: (kind) => (kind === 'keep' ? 'FOR SHARE' : 'FOR NO KEY UPDATE'),
  declared: (type) => type,
  *taken(names) {
    const text = `
      SELECT relname AS name
      FROM pg_class
      JOIN json_array_elements_text(:names::json) AS wanted (name) ON relname = wanted.name
      WHERE relnamespace = current_schema()::regnamespace
      LIMIT 1
    `
    return (yield* one<{ name: string }>(text, { names: JSON.stringify(names) }))?.name ?? null
  },
  lines(columns) {
    const typed = Object.entries(columns).map(([name, type]) => `${quoted(name)} ${type}`)
    const lines = `json_to_recordset(:lines::json) AS line (${typed.join(', ')})`
    return {
      value: (column) => `line.${quoted(column)}`,
      rows: (expressions) => `SELECT ${expressions.join(', ')} FROM ${lines}`,
      join: `${lines} CROSS JOIN`,
      from: `FROM ${lines}`,
      *run(text, rows, values = {}) {
        if (rows.length === 0) return 0
        const names = Object.keys(columns)
        const objects = rows.map((row) =>
          Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])),
        )
        return yield* run(text, { ...values, lines: JSON.stringify(objects, jsonValue) })
      },
    }
  },
  retype,
  makeView,
  elements: ELEMENTS,
}

/** Replaces what PostgreSQL cannot store before a value becomes part of JSON, which writes NUL in another way. */
function jsonValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return typeof value === 'string' ? storable(value) : value
}

/** PostgreSQL changes no type of a column that a view reads. */
function* retype(
  tables: readonly string[],
  columns: readonly Column[],
  views: readonly string[],
): Rule<void> {
  const actions = columns.map(
    ({ name, type }) =>
      `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
  )
  const changes = tables.map((table) => `ALTER TABLE ${quoted(table)} ${actions.join(', ')}`)
  yield* naming([...views.map((view) => `DROP VIEW IF EXISTS ${quoted(view)}`), ...changes])
}

/** Where columns are only added, who may read the view and what reads it stay. */
function* makeView(view: string, select: string): Rule<void> {
  const name = quoted(view)
  yield* exec(['SAVEPOINT in_place'])
  try {
    yield* exec([`CREATE OR REPLACE VIEW ${name} AS\n${select}`])
  } catch (error) {
    if (!isRefusal(error)) throw error
    yield* exec(['ROLLBACK TO SAVEPOINT in_place'])
    yield* naming([`DROP VIEW IF EXISTS ${name}`, `CREATE VIEW ${name} AS\n${select}`])
  }
  yield* exec(['RELEASE SAVEPOINT in_place'])
}

/** Throws JobError where something of a user is in the way, and names it in the server's words (`view mine`). */
function* naming(statements: readonly string[]): Rule<void> {
  try {
    yield* exec(statements)
  } catch (error) {
    if (!isRefusal(error)) throw error
    // Of a type that cannot change: `rule _RETURN on view mine depends on column "a"`.
    const { detail = '' } = error as { detail?: string }
    const [, object = 'something else in the database'] =
      /^(?:rule _RETURN on )?(.+?) depends on /.exec(detail) ?? []
    throw new JobError(
      'DATABASE',
      `the tables of this list have to change, and ${printable(object)} depends on them: drop it, sync, and make it again`,
    )
  }
}
