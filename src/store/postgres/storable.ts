import { type ColumnLimits, SQLITE_LIMITS } from '../columns/column.ts'

// What PostgreSQL can store: names and texts.

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
  // A row has to fit into a database page, of 8160 bytes, where a text takes 27 or fewer: longer ones are stored elsewhere.
  mostColumns: 280,
  cut: cutName,
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
