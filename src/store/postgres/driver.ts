import {
  all,
  type Dialect,
  one,
  quoted,
  type Rule,
  type Runner,
  run,
  SQL_TYPES,
  type Statement,
  type Values,
  withParameters,
} from '../core/sql.ts'
import { makeView, retype } from './alter.ts'
import { ELEMENTS } from './elements.ts'
import { SERVER_TIME } from './server/clock.ts'
import type { Cursor, Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'
import { POSTGRES_LIMITS, rowNotices, storable, storableJson, withinPage } from './storable.ts'

export const POSTGRES: Dialect = {
  limits: POSTGRES_LIMITS,
  sequence: 'sequence',
  now: SERVER_TIME,
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
  stored(catalog, row) {
    // The strings of a list have to be storable once a view reads them.
    for (const { column } of row.arrays) row.values.set(column, storableJson(String(row.values.get(column))))
    return withinPage(catalog, row)
  },
  rowNotices,
  lock: (kind) => (kind === 'keep' ? 'FOR SHARE' : 'FOR NO KEY UPDATE'),
  declared: (type) => type,
  *columnTypes(table) {
    const rows = yield* all<{ name: string; type: string }>(
      `
        SELECT attname AS name, format_type(atttypid, NULL) AS type
        FROM pg_attribute
        WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped
        ORDER BY attnum
      `,
      { table: quoted(table) },
    )
    return new Map(rows.map(({ name, type }) => [name, type]))
  },
  relationNamed: (names) =>
    one(
      `
        SELECT
          CASE
            WHEN relkind IN ('r', 'p', 'f') THEN 'table'
            WHEN relkind = 'v' THEN 'view'
            WHEN relkind = 'm' THEN 'materialized view'
            WHEN relkind = 'S' THEN 'sequence'
            WHEN relkind = 'c' THEN 'type'
            ELSE 'index'
          END AS kind,
          relname AS name
        FROM pg_class
        JOIN json_array_elements_text(:names::json) AS wanted (name) ON relname = wanted.name
        WHERE relnamespace = current_schema()::regnamespace
        LIMIT 1
      `,
      { names: JSON.stringify(names) },
    ),
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

/** What runs single statements, in a transaction or without one; only a transaction runs several at once, or returns exact values. */
export type Statements = Pick<Sql, 'rows' | 'count'> & Partial<Pick<Sql, 'exec'> & Cursor>

/** Runs the statements of a rule, each after the answer of the one before. */
export async function runRule<T>(sql: Statements, rule: Rule<T>): Promise<T> {
  let next = rule.next()
  while (!next.done) {
    let result: unknown
    try {
      result = await runStatement(sql, next.value)
    } catch (error) {
      // A rule may undo what it has tried.
      next = rule.throw(error)
      continue
    }
    next = rule.next(result)
  }
  return next.value
}

/** Runs rules on the server, each that writes in a transaction of its own. */
export function runnerOn(
  server: Statements & Pick<Server, 'transaction'>,
  { now, signal }: { now: () => number; signal: AbortSignal },
): Runner {
  return {
    dialect: POSTGRES,
    now,
    isLocal: false,
    reading: (rule) => runRule(server, rule),
    writing: (begin) => server.transaction((sql) => runRule(sql, begin())),
    async inBatches(batch) {
      while (!(await batch())) if (signal.aborted) return false
      return true
    },
  }
}

async function runStatement(sql: Statements, { text, values, wants }: Statement): Promise<unknown> {
  if (wants === 'rows' || wants === 'count') return sql[wants](...numberedValues(text, values))
  if (wants === 'nothing' && sql.exec) return sql.exec(text)
  throw new Error('this statement needs a transaction')
}

/** A text of the rules as the server takes it, and its values in order. */
function numberedValues(text: string, values: Values): [text: string, values: (string | number | null)[]] {
  const { numbered, names } = numberedOf(text)
  return [numbered, names.map((name) => storableValue(values, name))]
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
