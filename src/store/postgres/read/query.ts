import { JobError, MirrorError, UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import type { Value } from '../../core/reading.ts'
import type { Arrays, Cursor } from '../server/pool.ts'

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
export function withPlaceholders(sql: string, parameters: ReadonlyMap<string, string>): UserStatement {
  if (sql.includes('\0'))
    throw new UsageError('the SQL holds a NUL character, which PostgreSQL has in no text')
  const names: string[] = []
  const text = sql.replace(TOKEN, (token) => {
    if (/^\$\d/.test(token))
      throw new UsageError(
        `the SQL has the parameter ${token}; write :NAME, and give its value with --param NAME=VALUE`,
      )
    if (!/^:[^:=]/.test(token)) return token
    const name = token.slice(1)
    if (!parameters.has(name))
      throw new UsageError(
        `the SQL has the parameter ${printable(name)}; give its value with --param ${printable(name)}=VALUE`,
      )
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  const unused = [...parameters.keys()].find((name) => !names.includes(name))
  if (unused !== undefined)
    throw new UsageError(`--param ${printable(unused)}: the SQL has no such parameter`)
  return { text, values: names.map((name) => parameters.get(name) ?? ''), names }
}

/** Rows that come some at a time, so that memory never holds a large result whole. */
export interface StreamedRows {
  columns: string[]
  types: string[]
  batches: AsyncIterable<Value[][]>
}

const FIRST_ROWS = 100
const FETCHED_AT_ONCE = 2000

/** Of a batch: few rows are asked for at once where they are long. */
const BATCH_CHARACTERS = 4_000_000

/** Begins to read one SELECT, VALUES or TABLE; the server takes no other statement. One at a time in a transaction. */
export async function openCursor(
  sql: Cursor,
  select: string,
  values: readonly unknown[] = [],
): Promise<StreamedRows> {
  await sql.arrays(`DECLARE "_read" NO SCROLL CURSOR FOR ${select}`, values)
  const { rows, ...head } = await fetchRows(sql, FIRST_ROWS)
  return { ...head, batches: batchesOf(sql, rows) }
}

async function* batchesOf(sql: Cursor, first: Value[][]): AsyncIterable<Value[][]> {
  for (let rows = first; rows.length > 0; ) {
    yield rows
    ;({ rows } = await fetchRows(sql, nextCount(rows)))
  }
  await sql.arrays('CLOSE "_read"')
}

async function fetchRows(sql: Cursor, count: number): Promise<Arrays & { rows: Value[][] }> {
  return (await sql.arrays(`FETCH ${count} FROM "_read"`)) as Arrays & { rows: Value[][] }
}

function nextCount(rows: readonly Value[][]): number {
  let characters = 0
  for (const row of rows) for (const value of row) characters += typeof value === 'string' ? value.length : 8
  const fitting = Math.floor(BATCH_CHARACTERS / (characters / rows.length))
  return Math.max(1, Math.min(FETCHED_AT_ONCE, fitting))
}

/** What an error of one of our reading statements means. Returns the error itself where it means nothing special. */
function meaningOf(error: unknown): unknown {
  const code = sqlState(error)
  // Its message names the table, and no value.
  if (code === '42501' && error instanceof Error)
    return new MirrorError(
      `the PostgreSQL server says: ${printable(error.message, 300)}; GRANT SELECT on it to this role, or name a role that may read it`,
    )
  if (!ENDED.includes(code)) return error
  return new JobError(
    'TIMEOUT',
    `the PostgreSQL server has ended the statement (SQLSTATE ${code}): somebody cancelled it, or a time-out of the server or the role is shorter ` +
      '(see SHOW statement_timeout)',
  )
}

/** The same for a statement that the user wrote: with the server's own words. `names`: of `$1`, `$2`, ... */
export function meaningOfSql(error: unknown, names: readonly string[]): unknown {
  const code = sqlState(error)
  if (!(error instanceof Error) || ENDED.includes(code) || !WRONG.test(code)) return meaningOf(error)
  const message = error.message.replace(/\$(\d+)/g, (typed, at: string) => {
    const name = names[Number(at) - 1]
    return name === undefined ? typed : `:${name}`
  })
  return new UsageError(`the SQL cannot be run: ${printable(message, 1000)}${hintFor(code)}`)
}

/** Whether a statement names a schema, table, column, type or function that there is not. */
export function isUnknownName(error: unknown): boolean {
  return ['3F000', '42P01', '42703', '42704', '42883'].includes(sqlState(error))
}

function sqlState(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Cancelled, or a time-out of the statement or the transaction. */
const ENDED = ['57014', '25P03', '25P04']

/** Classes of SQLSTATEs of a statement that is wrong, would write, fails by its data, or asks for what this role may not see. */
const WRONG = /^(?:0A|20|21|22|23|25|2F|34|38|39|3F|42|44|54|55|P0)/

function hintFor(code: string): string {
  if (code === '42P01' || code === '42703')
    return '; the tables sync_columns and information_schema.tables list the names'
  if (code === '42P18') return '; write its type behind it, such as :NAME::bigint'
  return code === '25006' || code === '42601'
    ? '; query only reads: write one SELECT (or WITH, VALUES, TABLE)'
    : ''
}
