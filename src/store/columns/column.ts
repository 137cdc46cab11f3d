import type { JsonValue, RawNumber } from '../../json/value.ts'

export type ColumnType = 'INTEGER' | 'REAL' | 'TEXT'

/** A value that has a column of its own: anything but null and objects, whose fields have columns. */
export type Leaf = boolean | string | number | RawNumber | JsonValue[]

/** A bound value: INTEGER as bigint (a JavaScript number would be REAL), REAL as number, TEXT as string. */
export type SqlValue = string | number | bigint | null

/** One discovered column of a collection's table. */
export interface Column {
  name: string
  /** Where its values are in an item, as SQLite writes it: `$.customer.email`. */
  path: string
  type: ColumnType
  /** `text` is the column NAME__text beside a `value` column of the same path. */
  role: 'key' | 'value' | 'text'
  /** It stays INTEGER: it holds a number that a double would round. */
  wide: boolean
}

/** The most characters of a column's name: the name of a field may be a megabyte long, and statements repeat it. */
const LONGEST_NAME = 2000

/** What names and tables of a database can be. */
export interface ColumnLimits {
  /** The most discovered columns of a table, keys and __text columns included, our own not. */
  mostColumns: number
  /** The beginning of a name that leaves room for `room` more characters. */
  cut(name: string, room: number): string
  /** Names that every table has already: a field of that name gets the next free one. */
  reserved: readonly string[]
  /** The reserved names that not even a key may have. */
  reservedForKeys: readonly string[]
}

/** SQLite takes these for values wherever a view or a subquery names a column so. */
const TRUTHS = ['true', 'false']

export const SQLITE_LIMITS: ColumnLimits = {
  mostColumns: 500,
  cut: (name) => name,
  // The first two are names of the row id of every table; columns of views and subqueries that are called like the others get another name.
  reserved: ['rowid', 'oid', ...TRUTHS],
  reservedForKeys: TRUTHS,
}

/**
 * The column name for a path: its parts joined with `__`. An empty part becomes `field`; a name with `_` in
 * front, as ours have, gets the prefix `field`; NUL and lone surrogates, which SQLite cannot store, become
 * `_`.
 * @param isTaken Whether a name is in use for SQLite (see `foldName`); then `_2`, `_3` ... is appended.
 */
export function columnName(
  path: readonly string[],
  isTaken: (name: string) => boolean,
  limits = SQLITE_LIMITS,
): string {
  const joined = path.map((part) => (part === '' ? 'field' : part)).join('__')
  const storable = joined.slice(0, LONGEST_NAME).replace(/\0|\p{Cs}/gu, '_')
  return freeName(storable.startsWith('_') ? `field${storable}` : storable, isTaken, limits)
}

/** The name with this end, cut to fit; or with the first of `_2`, `_3` ... that is free. */
export function freeName(
  name: string,
  isTaken: (name: string) => boolean,
  { cut }: ColumnLimits,
  end = '',
): string {
  const candidate = (ending: string) => cut(name, ending.length) + ending
  let ending = end
  for (let number = 2; isTaken(candidate(ending)); number++) ending = `${end}_${number}`
  return candidate(ending)
}

/** The names, each numbered if SQLite compares it as equal with one before it or a reserved one. */
export function freeNames(
  names: readonly string[],
  reserved: readonly string[],
  limits: ColumnLimits,
): string[] {
  const taken = new Set(reserved.map(foldName))
  return names.map((name) => {
    const free = freeName(name, (candidate) => taken.has(foldName(candidate)), limits)
    taken.add(foldName(free))
    return free
  })
}

/** The same text for names that SQLite compares as equal: it ignores the case of ASCII letters only. */
export function foldName(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

const STEP = /\.(?:("(?:[^"\\]|\\.)*")|([^."[]+))/g

/**
 * The path of a field for SQLite's JSON functions: `$.customer.email`. A name that is empty or has a dot, a
 * bracket or a character that JSON escapes is quoted as in JSON: `$."a.b"`. Different paths have different
 * texts. SQLite before 3.45 finds no name that holds a `"`; every SQLite finds only the first of several
 * names that are equal up to a NUL.
 */
export function sqlitePath(path: readonly string[]): string {
  return '$' + path.map((name) => `.${isPlain(name) ? name : JSON.stringify(name)}`).join('')
}

/** The reverse of `sqlitePath`. */
export function parseSqlitePath(text: string): string[] {
  return Array.from(text.matchAll(STEP), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)),
  )
}

function isPlain(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"` && !/[.[]/.test(name)
}
