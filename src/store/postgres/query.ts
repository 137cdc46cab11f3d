import { type QueryConfig, types } from 'pg'
import { JobError, UsageError } from '../../errors.ts'
import { printable } from '../../text.ts'
import type { Value } from '../core/reading.ts'
import { msOf } from './connection.ts'
import type { Reading } from './server.ts'

// What `query` and `export` ask, and its values as a mirror in a file would show them.

/** A statement of the user's as the server takes it. */
export interface UserStatement {
  /** With `$1` for the first name, and so on. */
  text: string
  values: string[]
  /** The names of the values. */
  names: string[]
}

/** What a colon or a dollar may stand in: strings, names, comments, dollar quotes, `::` and `:=`; and parameters. */
const TOKEN = new RegExp(
  [
    /[eE]'(?:[^'\\]|\\.|'')*'?/u, // a string with escapes
    /'[^']*'?/u, // '' within it are two of these
    /"[^"]*"?/u,
    /--[^\r\n]*/u,
    /\/\*.*?(?:\*\/|$)/u,
    /[A-Za-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*/u, // a dollar in a name begins no quote
    /\$(?<tag>[A-Za-z_]\w*)?\$.*?(?:\$\k<tag>\$|$)/u,
    /\$\d+/u,
    /::|:=/u,
    /:[A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*/u, // `[1:2]` is a slice
  ]
    .map(({ source }) => source)
    .join('|'),
  'gsu',
)

/** Puts `$1`, `$2` in the places of `:NAME`. Throws UsageError for a name without a value, a value without a name, and for `$1` itself. */
export function withPlaceholders(sql: string, given: readonly (readonly [string, string])[]): UserStatement {
  const parameters = new Map(given)
  if (sql.includes('\0'))
    throw new UsageError('the SQL holds a NUL character, which PostgreSQL has in no text')
  const names: string[] = []
  const text = sql.replace(TOKEN, (token) => {
    if (!/^:[^:=]|^\$\d/.test(token)) return token
    const name = token.slice(1)
    if (token.startsWith('$') || !parameters.has(name))
      throw new UsageError(
        `the SQL has the parameter ${printable(token)}; write :NAME, and give its value with --param NAME=VALUE`,
      )
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  const unused = [...parameters.keys()].find((name) => !names.includes(name))
  if (unused !== undefined)
    throw new UsageError(`--param ${printable(unused)}: the SQL has no such parameter`)
  return { text, values: names.map((name) => parameters.get(name) ?? ''), names }
}

/** `types`: empty where the values show it. */
export interface StreamedRows {
  columns: string[]
  types: string[]
  batches: AsyncIterable<Value[][]>
}

/** Rows of one batch, so that memory never holds a large result whole. */
const BATCH_ROWS = 500

/** Runs a statement. The server takes a SELECT, WITH, VALUES or TABLE for a cursor, and nothing else; a plan needs none. One at a time. */
export async function stream(
  sql: Pick<Reading, 'query'>,
  { text, values }: Pick<UserStatement, 'text' | 'values'>,
): Promise<StreamedRows> {
  if (/^\s*(?:EXPLAIN|SHOW)\b/i.test(text)) {
    const { rows, ...head } = await ask(sql, text, values)
    return { ...head, batches: onlyOne(rows) }
  }
  await ask(sql, `DECLARE "_read" NO SCROLL CURSOR FOR ${text}`, values)
  const fetch = () => ask(sql, `FETCH ${BATCH_ROWS} FROM "_read"`, [])
  const { rows, ...head } = await fetch()
  return { ...head, batches: batchesOf(rows, fetch, () => ask(sql, 'CLOSE "_read"', [])) }
}

async function* onlyOne<T>(value: T): AsyncIterable<T> {
  yield await Promise.resolve(value)
}

async function* batchesOf(
  first: Value[][],
  fetch: () => Promise<{ rows: Value[][] }>,
  close: () => Promise<unknown>,
): AsyncIterable<Value[][]> {
  for (let rows = first; rows.length > 0; { rows } = await fetch()) yield rows
  await close()
}

async function ask({ query }: Pick<Reading, 'query'>, text: string, values: readonly string[]) {
  const { fields, rows } = await query({
    text,
    values: [...values],
    // One statement alone: in the simple protocol a second one could end the transaction that only reads.
    queryMode: 'extended',
    rowMode: 'array',
    types: { getTypeParser },
  } as QueryConfig)
  return {
    columns: fields.map(({ name }) => name),
    types: fields.map(({ dataTypeID }) => KINDS[dataTypeID]?.type ?? 'TEXT'),
    rows: rows as unknown as Value[][],
  }
}

const { BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, TIMESTAMPTZ } = types.builtins

const WHOLE = { type: 'INTEGER', parse: BigInt }
/** No format of ours has a number for NaN. */
const FLOAT = { type: 'REAL', parse: (text: string) => (text === 'NaN' ? text : Number(text)) }

/** How types are shown; all others are text. */
const KINDS: Readonly<Record<number, { type: string; parse: (text: string) => Value }>> = {
  [BOOL]: { type: 'INTEGER', parse: (text) => (text === 't' ? 1n : 0n) },
  [INT2]: WHOLE,
  [INT4]: WHOLE,
  [INT8]: WHOLE,
  [FLOAT4]: FLOAT,
  [FLOAT8]: FLOAT,
  [NUMERIC]: { type: '', parse: numericOf },
  [TIMESTAMPTZ]: { type: 'TEXT', parse: isoOf },
}

const getTypeParser = ((type: number) => KINDS[type]?.parse ?? String) as typeof types.getTypeParser

/** What `sum` and `avg` return, too. A whole number beyond 64 bits, and one beyond a double's range, stays text. */
function numericOf(text: string): Value {
  const [whole = '', fraction = ''] = text.split('.')
  if (/^-?\d+$/.test(whole) && /^0*$/.test(fraction)) {
    const value = BigInt(whole)
    return BigInt.asIntN(64, value) === value ? value : whole
  }
  const value = Number(text)
  return Number.isFinite(value) ? value : text
}

/** `infinity` and years before 1 stay as PostgreSQL writes them. */
function isoOf(text: string): string {
  const at = /^\d{4}-[^a-z]*$/i.test(text) ? msOf(text) : Number.NaN
  return Number.isNaN(at) ? text : new Date(at).toISOString()
}

/** Cancelled, or a time-out of the statement or the transaction. */
const ENDED = ['57014', '25P03', '25P04']

/** Classes of SQLSTATEs of a statement that is wrong, would write, fails by its data, or asks for what this role may not see. */
const WRONG = /^(?:0A|20|21|22|23|25|2F|34|38|39|3F|42|44|54|55|P0)/

/** What an error of a statement of the user's means; `names` are those of `$1`, `$2`. Returns the error itself where it means nothing special. */
export function meaningOfSql(error: unknown, names: readonly string[]): unknown {
  const code = sqlState(error)
  if (!(error instanceof Error)) return error
  if (ENDED.includes(code))
    return new JobError(
      'TIMEOUT',
      `the PostgreSQL server has ended the statement (SQLSTATE ${code}): somebody cancelled it, or a time-out of the server or the role is shorter ` +
        '(see SHOW statement_timeout)',
    )
  if (!WRONG.test(code)) return error
  const message = error.message.replace(/\$(\d+)/g, (typed, at: string) => {
    const name = names[Number(at) - 1]
    return name === undefined ? typed : `:${name}`
  })
  // The server takes nothing else for a cursor.
  const hint = code === '42601' ? '; query only reads: write one SELECT (or WITH, VALUES, TABLE)' : ''
  return new UsageError(`the SQL cannot be run: ${printable(message, 1000)}${hint}`)
}

/** Whether a statement names a schema, table, column, type or function that there is not. */
export function isUnknownName(error: unknown): boolean {
  return ['3F000', '42P01', '42703', '42704', '42883'].includes(sqlState(error))
}

function sqlState(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
