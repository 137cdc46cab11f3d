import type { types } from 'pg'

// Values of any type, as what people ask for shows them: as a mirror in a file would.

const [BOOL, INT8, INT2, INT4, FLOAT4, FLOAT8, TIMESTAMPTZ, NUMERIC] = [16, 20, 21, 23, 700, 701, 1184, 1700]

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

export const getOutsideParser = ((type: number) => {
  if (type === INT8 || type === INT4 || type === INT2) return BigInt
  if (type === FLOAT4 || type === FLOAT8) return floatOf
  if (type === NUMERIC) return numericOf
  if (type === BOOL) return (value: string) => (value === 't' ? 1n : 0n)
  if (type === TIMESTAMPTZ) return isoOf
  return String
}) as typeof types.getTypeParser

/** The type of these values in a mirror in a file; empty where each value shows it. */
export function outsideType(type: number): string {
  if (type === INT8 || type === INT4 || type === INT2 || type === BOOL) return 'INTEGER'
  if (type === FLOAT4 || type === FLOAT8) return 'REAL'
  if (type === TIMESTAMPTZ) return 'TIME'
  return type === NUMERIC ? '' : 'TEXT'
}

/** No format of ours has a number for NaN. */
function floatOf(text: string): number | string {
  return text === 'NaN' ? text : Number(text)
}

/** What `sum` and `avg` return, too. A whole number beyond 64 bits, and one beyond a double's range, stays text. */
function numericOf(text: string): bigint | number | string {
  const [whole = '', fraction = ''] = text.split('.')
  if (/^-?\d+$/.test(whole) && /^0*$/.test(fraction)) {
    const value = BigInt(whole)
    return value >= LEAST && value <= MOST ? value : whole
  }
  const value = Number(text)
  return Number.isFinite(value) ? value : text
}

/** `infinity` and years before 1 stay as PostgreSQL writes them. */
function isoOf(text: string): string {
  const at = /^\d{4}-[^a-z]*$/i.test(text) ? msOf(text) : Number.NaN
  return Number.isNaN(at) ? text : new Date(at).toISOString()
}

/** A time in UTC, in epoch milliseconds. */
export function msOf(text: string): number {
  return Date.parse(`${text.replace(' ', 'T')}:00`)
}
