import type { TableShape } from '../columns/catalog.ts'
import type { ColumnLimits } from '../columns/column.ts'

/**
 * A rule of the store, written once for both databases: a generator that yields one statement after another and receives its result, with
 * `yield*` where an async function has `await`. A driver runs it inside a transaction: on a file at once, so that nothing else touches the
 * connection meanwhile; on a server each statement in its turn. A transaction may run twice, so a rule changes nothing outside.
 */
export type Rule<T> = Generator<Statement, T, Result>

/** A statement for `:name` parameters. Where the database cannot tell the type of one, the text does: `:at::timestamptz`. */
export interface Statement {
  text: string
  values: Values
  /** Its rows, or how many it has changed. */
  wants: 'rows' | 'count'
}

export type Values = Readonly<Record<string, string | number | null>>

/** Rows, or a number, as the statement wants. */
export type Result = unknown

/** Where both databases need other words. */
export interface Dialect {
  /** What names of columns have to be like. */
  limits: ColumnLimits
  /** The column that identifies a row for a moment, and its type. */
  rowId: string
  rowIdType: string
  /** The column that rises with each row of a table, whatever the clock said. */
  sequence: string
  /** A join whose second table is read by the index on what joins it. */
  join: string
  /** The function that returns the later of two times. */
  later: string
  /** For FROM: the texts of a JSON list, as `value` of the alias. */
  each(list: string, alias: string): string
  /** An expression for the id of a row, as `packTexts` writes it. */
  idOfRow(keys: Keys, row: string): string
  /** A condition: the row has this id, which came from a row of these columns. */
  hasId(keys: Keys, row: string, id: string): string
  /** Whether the name is that of a view of ours: a user may have put another one in its place. */
  isOwnView(name: string): Rule<boolean>
  /** Inserts rows, or replaces the columns that are not of the key. `columns`: with their types on a server. */
  upsert(
    table: string,
    columns: Readonly<Record<string, string>>,
    key: readonly string[],
    rows: readonly Values[],
  ): Rule<void>
}

/** The columns of a collection's key, in the order of its fields. */
export type Keys = Pick<TableShape, 'keyColumns' | 'keyTypes'>

/** The tables of a collection: what analysts query, the items as they were sent, superseded versions. */
export const KINDS = ['typed', 'raw', 'history'] as const

export type TableKind = (typeof KINDS)[number]

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

export function* all<T>(text: string, values: Values = {}): Rule<T[]> {
  return (yield { text, values, wants: 'rows' }) as T[]
}

/** The first row; null if there is none. */
export function* one<T>(text: string, values: Values = {}): Rule<T | null> {
  const [row] = yield* all<T>(text, values)
  return row ?? null
}

/** Returns how many rows it has inserted, changed or deleted. */
export function* run(text: string, values: Values = {}): Rule<number> {
  return (yield { text, values, wants: 'count' }) as number
}

/** A name as both databases read it, whatever characters it has. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The parameters of a text, each with its type where it has one. Not those in names and literals. */
const PARAMETER = /'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![:\w]):([a-z]\w*)(?:::(\w+))?/gi

/** Replaces the parameters of a statement by what `write` returns. */
export function withParameters(
  text: string,
  write: (name: string, type: string | undefined) => string,
): string {
  return text.replace(PARAMETER, (found, name: string | undefined, type: string | undefined) =>
    name === undefined ? found : write(name, type),
  )
}

/** A time as either database returns it: as text from a file, as epoch milliseconds from a server. */
export type StoredTime = string | number

export function msOf(time: StoredTime): number {
  return typeof time === 'number' ? time : Date.parse(time)
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

export function textOf(time: StoredTime): string {
  return typeof time === 'string' ? time : timeOf(time)
}
