import { parseDecimal } from '../../json/decimal.ts'
import { numberText, type RawNumber } from '../../json/value.ts'
import type { ColumnType, SqlValue } from './column.ts'
import type { Leaf } from './flatten.ts'

/** A value in its own storage class: bigint is INTEGER, number is REAL, string is TEXT. */
export type OwnValue = bigint | number | string

const INTEGER_DIGITS = 19n

/**
 * The value as a column of its own class stores it. Whole numbers are INTEGER however they are written (20,
 * 20.0, 2e1), fractions REAL; beyond 64 bits, or where a double turns into infinity or zero, numbers are
 * TEXT.
 */
export function ownValue(value: Leaf): OwnValue {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 1n : 0n
  return Array.isArray(value) ? JSON.stringify(value) : ownNumber(value)
}

function ownNumber(number: number | RawNumber): OwnValue {
  if (Number.isSafeInteger(number)) return BigInt(Number(number))
  if (typeof number === 'number' && !Number.isInteger(number)) return number
  // From 2^53 on a double may have lost digits: only the text is right.
  return numberFromText(numberText(number))
}

function numberFromText(text: string): OwnValue {
  const { negative, digits, exponent } = parseDecimal(text)
  if (exponent < 0n) {
    const double = Number(text)
    return double === 0 || !Number.isFinite(double) ? text : double
  }
  if (BigInt(digits.length) + exponent > INTEGER_DIGITS) return text
  const whole = BigInt((negative ? '-' : '') + (digits || '0') + '0'.repeat(Number(exponent)))
  return BigInt.asIntN(64, whole) === whole ? whole : text
}

/** The type that a column takes from its first value. */
export function typeOf(own: OwnValue): ColumnType {
  if (typeof own === 'bigint') return 'INTEGER'
  return typeof own === 'number' ? 'REAL' : 'TEXT'
}

/** Whether a double would round the integer. */
export function isWide(own: OwnValue): boolean {
  return typeof own === 'bigint' && BigInt(Number(own)) !== own
}

/** What a column of this type stores for the value; undefined if the value does not fit. */
export function fittingValue(type: ColumnType, value: Leaf, own: OwnValue): SqlValue | undefined {
  if (type === 'INTEGER') return typeof own === 'bigint' ? own : undefined
  if (typeof value === 'boolean') return undefined
  if (type === 'TEXT') return typeof own === 'string' ? own : asText(value)
  if (typeof own === 'bigint') return isWide(own) ? undefined : Number(own)
  return typeof own === 'number' ? own : undefined
}

/** The value as text: `true`, `false`, numbers as they were written, arrays as JSON. */
export function asText(value: Leaf): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? JSON.stringify(value) : numberText(value)
}
