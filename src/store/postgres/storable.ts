import type { Upsert } from '../../sync/store.ts'
import type { Notice } from '../../sync/types.ts'
import { type ColumnLimits, SQLITE_LIMITS, type SqlValue } from '../columns/column.ts'
import type { TypedRow } from '../columns/row.ts'

// What PostgreSQL can store: names, texts, and rows of a database page.

export function literal(text: string): string {
  return text.includes('\\')
    ? ` E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
    : `'${text.replaceAll("'", "''")}'`
}

/** PostgreSQL cuts longer names without saying so. */
const LONGEST_NAME_BYTES = 63

/** The beginning of a name that fits, and leaves room for this many more bytes. */
function cutName(name: string, room = 0): string {
  let bytes = Buffer.byteLength(name)
  if (bytes <= LONGEST_NAME_BYTES - room) return name
  const characters = Array.from(name)
  while (bytes > LONGEST_NAME_BYTES - room) bytes -= Buffer.byteLength(characters.pop() ?? '')
  return characters.join('')
}

const SYSTEM_COLUMNS = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid']

export const POSTGRES_LIMITS: ColumnLimits = {
  // A row of more texts may not fit into a database page of 8 kB, where each long one takes 18 bytes.
  mostColumns: 400,
  cut: cutName,
  // With the ends of the names of its tables it has to fit.
  longestCollection: LONGEST_NAME_BYTES - 13,
  // Those of SQLite, too, so that both stores choose the same names.
  reserved: [...SQLITE_LIMITS.reserved, ...SYSTEM_COLUMNS],
  reservedForKeys: [...SQLITE_LIMITS.reservedForKeys, ...SYSTEM_COLUMNS],
}

/** The text as PostgreSQL can store it: NUL is escaped, half of a surrogate pair is replaced. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\\u0000')
}

/** The same for a text that is JSON, so that its strings are storable once they are read. */
export function storableJson(json: string): string {
  if (!json.includes('\\u')) return json
  return json.replace(/\\(u0000|u[dD][89a-fA-F][\da-fA-F]{2}|.)/g, (written, sequence: string) => {
    if (sequence === 'u0000') return '\\\\u0000'
    return sequence.length > 1 ? '\\ufffd' : written
  })
}

// PostgreSQL keeps a row on one page. It stores a long text elsewhere, but never one of up to 24 bytes, so that a row of several hundred
// short texts is refused (SQLSTATE 54000), and the whole list with it.

/** Bytes of the largest row (MaxHeapTupleSize). */
const LARGEST_ROW = 8160

/** Our own columns of a version: the organization, three times, two numbers, its order and reason, and where its JSON and its list of fields are. */
const OWN_BYTES = 37 + 3 + 6 * 8 + 14 + 2 * 20

/** The most that a text takes in its row: a compressed one of 24 bytes, aligned; longer ones leave a pointer of 18. */
const TEXT_BYTES = 27

/** The header of a row; beside it, each column takes a bit. */
const HEADER_BYTES = 23

/** Columns that somebody else may have added, or dropped. */
const SPARE_COLUMNS = 64

/** The row with as many of its values as surely fit, in the order of the columns. */
export function withinPage(
  { columns, keyPaths }: { columns: readonly { name: string }[]; keyPaths: readonly unknown[] },
  row: TypedRow,
): TypedRow {
  const header = HEADER_BYTES + Math.ceil((columns.length + SPARE_COLUMNS) / 8)
  const room = LARGEST_ROW - aligned(header) - aligned(OWN_BYTES + keyPaths.length * TEXT_BYTES)
  // As nearly all rows: nothing has to be measured.
  if (row.values.size * TEXT_BYTES <= room) return { ...row, leftOut: 0 }
  const values = new Map<string, SqlValue>()
  let bytes = 0
  for (const { name } of columns) {
    const value = row.values.get(name)
    if (value === undefined) continue
    const end = endOfValue(value, bytes)
    if (end > room) continue
    bytes = end
    values.set(name, value)
  }
  const arrays = row.arrays.filter(({ column }) => values.has(column))
  return { values, arrays, leftOut: row.values.size - values.size }
}

/** Notices about rows that are not stored as they were sent. */
export function rowNotices(upserts: readonly Upsert[], rows: readonly TypedRow[]): Notice[] {
  return [...nulNotice(upserts), ...fullNotice(rows)]
}

/** PostgreSQL's texts hold no NUL. */
function nulNotice(upserts: readonly Upsert[]): Notice[] {
  const some = upserts.filter(({ text }) => text.includes('\\u0000')).length
  if (some === 0) return []
  const message = `${some} of its items hold a NUL character, which PostgreSQL cannot store: it is kept as \\u0000 in their columns`
  return [{ level: 'info', message }]
}

function fullNotice(rows: readonly TypedRow[]): Notice[] {
  const some = rows.filter(({ leftOut = 0 }) => leftOut > 0).length
  if (some === 0) return []
  const message = `${some} of its items have more values than a row of PostgreSQL holds (8 kB): those of their last columns stay in _json only`
  return [{ level: 'warn', message }]
}

/** Where a value ends that is stored from here on. */
function endOfValue(value: SqlValue, from: number): number {
  if (value === null) return from
  if (typeof value !== 'string') return aligned(from) + 8
  if (value.length >= TEXT_BYTES) return from + TEXT_BYTES
  return from + Math.min(Buffer.byteLength(storable(value)) + 1, TEXT_BYTES)
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8
}
