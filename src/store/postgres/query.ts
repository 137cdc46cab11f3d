import { type QueryConfig, types } from 'pg'
import { JobError, systemCode, UsageError } from '../../errors.ts'
import { printable } from '../../text.ts'
import { distinctNames, firstWord, type Rows, type Value } from '../core/query.ts'
import { msOf, numbered, type Query } from './connections.ts'

// What `query` and `export` ask, and its values as a mirror in a file would show them.

/** A statement of the user's as the server takes it, with `$1` for the first of its parameters. */
export interface UserStatement {
  text: string
  values: string[]
}

/** Puts `$1`, `$2` in the places of `:NAME`. Throws UsageError for a name without a value, and a value without a name. */
export function withPlaceholders(sql: string, given: readonly (readonly [string, string])[]): UserStatement {
  if (sql.includes('\0'))
    throw new UsageError('the SQL holds a NUL character, which PostgreSQL has in no text')
  const values = new Map(given)
  const { text, parameters } = numbered(sql)
  for (const name of parameters)
    if (!values.has(name))
      throw new UsageError(
        `the SQL has the parameter :${printable(name)}; give it with --param ${printable(name)}=VALUE`,
      )
  for (const name of values.keys())
    if (!parameters.includes(name))
      throw new UsageError(`--param ${printable(name)}: the SQL has no such parameter`)
  return { text, values: parameters.map((name) => values.get(name) ?? '') }
}

/** Rows of one batch, so that memory never holds a large result whole. */
const FETCHED_ROWS = 500

/** Runs a statement. The server takes a SELECT, WITH, VALUES or TABLE for a cursor, and nothing else; a plan needs none. One at a time. */
export async function stream(query: Query, { text, values }: UserStatement): Promise<Rows> {
  if (['EXPLAIN', 'SHOW'].includes(firstWord(text))) {
    const { rows, ...head } = await ask(query, text, values)
    return { ...head, batches: [rows] }
  }
  await ask(query, `DECLARE "_read" NO SCROLL CURSOR FOR ${text}`, values)
  const next = () => ask(query, `FETCH ${FETCHED_ROWS} FROM "_read"`, [])
  const { rows: first, ...head } = await next()
  async function* batches(): AsyncIterable<Value[][]> {
    for (let rows = first; rows.length > 0; { rows } = await next()) yield rows
    await ask(query, 'CLOSE "_read"', [])
  }
  return { ...head, batches: batches() }
}

async function ask(query: Query, text: string, values: readonly string[]) {
  const { fields, rows } = await query({
    text,
    values: [...values],
    // One statement alone: in the simple protocol a second one could end the transaction that only reads.
    queryMode: 'extended',
    rowMode: 'array',
    types: { getTypeParser },
  } as QueryConfig)
  return {
    columns: distinctNames(fields.map(({ name }) => name)),
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
  const whole = /^(-?\d+)(?:\.0*)?$/.exec(text)?.[1]
  if (whole !== undefined) {
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

/** What an error of a statement of the user's means. Returns the error itself where it means nothing special. */
export function meaningOfSql(error: unknown): unknown {
  const code = systemCode(error) ?? ''
  if (!(error instanceof Error)) return error
  if (ENDED.includes(code))
    return new JobError(
      'TIMEOUT',
      `the PostgreSQL server has ended the statement (SQLSTATE ${code}): somebody cancelled it, or a time-out of the server or the role is shorter ` +
        '(see SHOW statement_timeout)',
    )
  if (!WRONG.test(code)) return error
  // The server takes nothing else for a cursor.
  const hint = code === '42601' ? '; query only reads: write one SELECT (or WITH, VALUES, TABLE)' : ''
  return new UsageError(`the SQL cannot be run: ${printable(error.message, 1000)}${hint}`)
}

/** Whether a statement names a schema, table, column, type or function that there is not. */
export function isUnknownName(error: unknown): boolean {
  return ['3F000', '42P01', '42703', '42704', '42883'].includes(systemCode(error) ?? '')
}
