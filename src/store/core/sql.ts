import type { Column, ColumnLimits, ColumnType, SqlValue } from '../columns/column.ts'
import type { TypedRow } from '../columns/row.ts'

/**
 * A rule of the store, written once for both databases: a generator that yields one statement after another and receives its result, with
 * `yield*` where an async function has `await`. A driver runs it inside a transaction: on a file without a pause, so that nothing else touches
 * the connection; on a server it waits for each answer. A transaction may run twice, so a rule changes nothing outside.
 */
export type Rule<T> = Generator<Statement, T, unknown>

/** SQL with `:name` parameters. Where the database cannot infer the type of one, the text has it: `:at::timestamptz`. */
export interface Statement {
  text: string
  values: Values
  /** For a statement of `Lines` on a file, which is run once for each line: their values. */
  lines?: readonly (readonly SqlValue[])[]
  /** Its rows as objects; how many rows it changed; or nothing, also of several statements without parameters. */
  wants: 'rows' | 'count' | 'nothing'
}

export type Values = Readonly<Record<string, string | number | null>>

/** How a database writes what both can do, in SQL that differs. There are two: `SQLITE` and `POSTGRES`, each in the `driver.ts` of its store. */
export interface Dialect {
  /** The rules for names. */
  limits: ColumnLimits
  /** An expression for the database's own time, in epoch milliseconds. */
  now: string
  /** For FROM: the texts of a JSON list, as `value` of the alias. */
  each(list: string, alias: string): string
  /** An expression for the id of a row, as `readKey` of `sync/items.ts` has it. */
  idOfRow(keys: Keys, row: string): string
  /** A condition: the row has this id, which `idOfRow` has made with the same keys. */
  hasId(keys: Keys, row: string, id: string): string
  /** A typed row as its table can hold it. */
  stored(row: TypedRow): TypedRow
  /** Ends a SELECT of one row: nobody else changes it until the transaction ends; with `change` nobody else locks it either. */
  lock(kind: 'keep' | 'change'): string
  /** How a table declares a type of `SQL_TYPES`, or a time. */
  declared(type: string): string
  /** The first of these names that a table, view or other thing has; null: none does. */
  taken(names: readonly string[]): Rule<string | null>
  /** How a statement reads lines of values. */
  lines(columns: Columns): Lines
  /** Gives columns of tables other types. It may drop these views, which read them: the caller makes them again. */
  retype(tables: readonly string[], columns: readonly Column[], views: readonly string[]): Rule<void>
  /** Makes a view, or makes it anew. */
  makeView(name: string, select: string): Rule<void>
  elements: ElementSql
}

/** How a database reads the elements of a list. */
export interface ElementSql {
  /** An expression for the place of `e` in its list, from 0. */
  index: string
  /** SQL after the typed table `t`: joins the elements that are objects, as `e`. A column that is null, or text other than a list, has none. `hasNul`: a name of a field of the list has one. */
  from(column: string, hasNul: boolean): string
  /** An expression for a value of `e` in a column of this type; null if it is of another class. */
  value(type: ColumnType, path: string): string
}

/** How a statement reads lines of values, in the order of the columns: a file runs it for one line after another, a server once for all of them. */
export interface Lines {
  /** An expression for a value of a line. A file takes the values in their order, each once. */
  value(column: string): string
  /** For INSERT: a row of these expressions for each line. */
  rows(expressions: readonly string[]): string
  /** For FROM, in front of other tables; for an UPDATE without any, with the word itself. */
  join: string
  from: string
  /** Returns how many rows it has changed. Nothing is run for no line. */
  run(text: string, lines: readonly (readonly SqlValue[])[], values?: Values): Rule<number>
}

/** How rules run on a database. */
export interface Runner {
  dialect: Dialect
  /** Epoch milliseconds. */
  now: () => number
  /** Whether a statement costs no way over a network. */
  isLocal: boolean
  /** Runs a rule that only reads. */
  reading<T>(rule: Rule<T>): Promise<T>
  /** Runs a rule in a transaction. `begin` makes the rule, again if the transaction runs twice. */
  writing<T>(begin: () => Rule<T>): Promise<T>
  /** Runs batches until one returns true. Returns false if the signal to stop came before that; the first batch runs even then. */
  inBatches(batch: () => Promise<boolean>): Promise<boolean>
  /** Of a file: empties its log, as far as no reader needs it. What was deleted stays readable there till then. */
  cutLog?(): Promise<void>
  /** Makes the statistics by which people's queries are planned, where the database does not do so itself. */
  analyze?(): Promise<void>
}

/** All waits for a database together, after the signal to stop. Milliseconds. */
const WAITS_WHEN_STOPPING_MS = 2000

/** Returns a function that says whether a process that was told to stop has waited for long enough. `now`: milliseconds of any clock. */
export function createStopWatch(signal: AbortSignal, now: () => number): () => boolean {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  return () => now() >= stoppedAt + WAITS_WHEN_STOPPING_MS
}

/** Names and types of columns, in order. */
export type Columns = Readonly<Record<string, string>>

/** The types of values, in the words of the texts. */
export const SQL_TYPES: Record<ColumnType, string> = {
  INTEGER: 'bigint',
  REAL: 'double precision',
  TEXT: 'text',
}

/** The columns of a collection's key, in the order of its fields. */
export type Keys = readonly Column[]

export function* all<T>(text: string, values: Values = {}): Rule<T[]> {
  return (yield { text, values, wants: 'rows' }) as T[]
}

/** The first row; null if there is none. */
export function* one<T>(text: string, values: Values = {}): Rule<T | null> {
  const [row] = yield* all<T>(text, values)
  return row ?? null
}

/** The row of a statement that always has one. */
export function* only<T>(text: string, values: Values = {}): Rule<T> {
  const [row] = yield* all<T>(text, values)
  if (row !== undefined) return row
  throw new Error(`no row is there for this statement: ${text}`)
}

/** Returns how many rows it has inserted, changed or deleted. */
export function* run(text: string, values: Values = {}): Rule<number> {
  return (yield { text, values, wants: 'count' }) as number
}

/** Rows that one transaction of long work goes through: some tens of milliseconds, though versions are spread over the database, each on a page of its own. */
export const BATCH_ROWS = 1000

/** Deletes a batch of the rows of which the condition is true. `key`: the columns that identify a row. Returns how many are gone; fewer than BATCH_ROWS: none is left. */
export function deleteBatch(
  table: string,
  key: readonly string[],
  where: string,
  values: Values,
): Rule<number> {
  const columns = key.map(quoted).join(', ')
  return run(
    `DELETE FROM ${quoted(table)} WHERE (${columns}) IN (SELECT ${columns} FROM ${quoted(table)} WHERE ${where} LIMIT ${BATCH_ROWS})`,
    values,
  )
}

/** Runs statements without parameters, which are not prepared. */
export function* exec(statements: readonly string[]): Rule<void> {
  if (statements.length > 0) yield { text: statements.join(';\n'), values: {}, wants: 'nothing' }
}

/** A name as both databases read it, whatever characters it has. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as both databases read it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** The parameters of a text, each with its type where it has one. Not those in literals, names and comments. */
const PARAMETER = new RegExp(
  [
    /(?<!\w)E'(?:[^'\\]|\\[\s\S]|'')*'/,
    /'(?:[^']|'')*'/,
    /\$\$[\s\S]*?\$\$/,
    /"(?:[^"]|"")*"/,
    /--.*/,
    /\/\*[\s\S]*?(?:\*\/|$)/,
    /(?<![:\w]):([a-z]\w*)(?:::(\w+))?/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
)

/** Replaces the parameters of a statement by what `write` returns. */
export function withParameters(
  text: string,
  write: (name: string, type: string | undefined) => string,
): string {
  return text.replace(PARAMETER, (found, name: string | undefined, type: string | undefined) =>
    name === undefined ? found : write(name, type),
  )
}

/** The later of two times. */
export function laterOf(time: string, other: string): string {
  return `CASE WHEN ${time} > ${other} THEN ${time} ELSE ${other} END`
}

export function msOf(time: string): number {
  return Date.parse(time)
}

/** A time as it is stored and shown: ISO 8601, UTC, milliseconds. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
