import type { ColumnLimits } from '../columns/column.ts'
import { SQLITE_LIMITS } from '../columns/column.ts'

export { quoted } from '../core/sql.ts'

/** Statements on the server, inside a transaction or each on its own. */
export interface Sql {
  /** The rows of one statement, prepared once a connection. Throws MirrorError, or StaleTablesError. */
  rows<T>(text: string, values?: readonly unknown[]): Promise<T[]>
  /** The same, of a statement without rows. Returns how many it has changed. */
  count(text: string, values?: readonly unknown[]): Promise<number>
  /** Runs statements without parameters. */
  exec(text: string): Promise<void>
}

export function literal(text: string): string {
  return text.includes('\\')
    ? ` E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
    : `'${text.replaceAll("'", "''")}'`
}

/** PostgreSQL cuts longer names without a word. */
const LONGEST_NAME_BYTES = 63

/** The beginning of a name that fits, with room for so many more bytes. */
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
  // Those of SQLite, too, so that both stores choose the same names.
  reserved: [...SQLITE_LIMITS.reserved, ...SYSTEM_COLUMNS],
  reservedForKeys: SYSTEM_COLUMNS,
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
