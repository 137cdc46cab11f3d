import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import type { SqlValue } from '../../columns/column.ts'
import { quoted, storable, storableJson } from '../sql.ts'

// How a value of SQLite becomes one of PostgreSQL, and how both sides tell that they hold the same.

/** `list`: a text that may be JSON, from which views read elements. */
export type MovedType = 'bigint' | 'double precision' | 'text' | 'list' | 'timestamptz'

export interface MovedColumn {
  name: string
  type: MovedType
}

/** What a table holds: the number of its rows, and the sum of a number of each row, in any order. */
export interface Digest {
  rows: number
  sum: bigint
}

export function isSame(one: Digest | null, other: Digest | null): boolean {
  return one !== null && other !== null && one.rows === other.rows && one.sum === other.sum
}

/** The type that a parameter has in PostgreSQL. */
export function sqlType(type: MovedType): string {
  return type === 'list' ? 'text' : type
}

/** The value as PostgreSQL reads it. Throws MirrorError for a time that is none. */
export function textOf(value: SqlValue, type: MovedType): string | null {
  if (value === null) return null
  if (type === 'timestamptz') return timeOf(value)
  const text = String(value)
  if (type === 'list' && text.startsWith('[')) return storable(storableJson(text))
  return type === 'text' || type === 'list' ? storable(text) : text
}

function timeOf(value: SqlValue): string {
  const at = Date.parse(String(value))
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw new MirrorError(
    'the file holds a time that is none, so it was changed by something else; nothing more is copied',
  )
}

const DIGITS = 15

/** Adds a row to a digest. `texts`: as `textOf` made them. */
export function addRow(
  digest: Digest,
  texts: readonly (string | null)[],
  columns: readonly MovedColumn[],
): void {
  const line = texts.map((text, index) => pieceOf(text, columns[index]?.type ?? 'text')).join('')
  const hash = createHash('sha256').update(line).digest('hex').slice(0, DIGITS)
  digest.rows++
  digest.sum += BigInt(`0x${hash}`)
}

function pieceOf(text: string | null, type: MovedType): string {
  if (text === null) return '-'
  const shown =
    type === 'double precision' ? bitsOf(text) : type === 'timestamptz' ? String(Date.parse(text)) : text
  return `${Buffer.byteLength(shown)}:${shown}`
}

function bitsOf(text: string): string {
  const bytes = Buffer.alloc(8)
  // -0 is 0 on both sides.
  bytes.writeDoubleBE(Number(text) + 0)
  return bytes.toString('hex')
}

/** The statement that makes the same digest of a table on the server: `rows` and `sum`. */
export function digestSql(table: string, columns: readonly MovedColumn[]): string {
  const line = columns.map(({ name, type }) => {
    const shown = shownSql(quoted(name), type)
    return `coalesce(octet_length(${shown})::text || ':' || ${shown}, '-')`
  })
  const number = `('x' || left(encode(sha256(convert_to(${line.join(' || ')}, 'UTF8')), 'hex'), ${DIGITS}))::bit(60)::bigint`
  return `SELECT count(*) AS rows, coalesce(sum(${number}), 0)::text AS sum FROM ${quoted(table)}`
}

function shownSql(name: string, type: MovedType): string {
  if (type === 'bigint') return `${name}::text`
  if (type === 'double precision') return `encode(float8send(${name} + 0.0::double precision), 'hex')`
  if (type === 'timestamptz') return `round(extract(epoch FROM ${name}) * 1000)::bigint::text`
  return name
}
