declare const exact: unique symbol

/** A number that a double does not hold, or that is beyond 64 bits: 20 digits, 1e400. JSON.stringify writes its text. */
export interface RawNumber {
  readonly rawJSON: string
  readonly [exact]: true
}

/** Any JSON value without loss: a number that a double does not hold, or beyond 64 bits, is a RawNumber. */
export type JsonValue = null | boolean | string | number | RawNumber | JsonValue[] | JsonObject

export interface JsonObject {
  [name: string]: JsonValue
}

declare global {
  // ECMAScript's "JSON.parse source text access", which TypeScript's library does not describe yet.
  interface JSON {
    /** @param reviver Gets the source of numbers, texts, truth values and null. */
    parse(
      text: string,
      reviver: (name: string, value: JsonValue, context: { source?: string }) => JsonValue,
    ): JsonValue
    rawJSON(text: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

export function isRawNumber(value: JsonValue): value is RawNumber {
  return typeof value === 'object' && JSON.isRawJSON(value)
}

/** Whether the value is a JSON object: not a list, not null, and not a RawNumber, which is an object only for JavaScript. */
export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

/** Returns a value that should be an object; throws if it is not. */
export function asJsonObject(value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value
  throw new Error('the value is not an object')
}

/** A number as it was written. */
export function numberText(number: number | RawNumber): string {
  return typeof number === 'number' ? String(number) : number.rawJSON
}

/** The value of a JSON number: digits * 10^exponent, without zeros at either end of the digits; zero has no digits. */
interface Decimal {
  negative: boolean
  digits: string
  exponent: bigint
}

// A number that needs more zeros of padding is written with an exponent, so that 1e999999999 costs nothing.
const MOST_PADDING = 100n

// Reading an exponent of millions of digits takes minutes: the digits behind these are ignored.
const LONGEST_EXPONENT = 10_000

/** Reads the text of a JSON number. The cost follows the length of the text, never the size of the number. */
export function parseDecimal(text: string): Decimal {
  const negative = text.startsWith('-')
  const [mantissa = '', exponent = '0'] = text.slice(negative ? 1 : 0).split(/[eE]/)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const end = endOfDigits(all)
  const digits = all.slice(0, end).replace(/^0+/, '')
  if (digits === '') return { negative: false, digits, exponent: 0n }
  return { negative, digits, exponent: readExponent(exponent) + BigInt(all.length - end - fraction.length) }
}

function readExponent(text: string): bigint {
  const digits = text.replace(/^[-+]?0*/, '').slice(0, LONGEST_EXPONENT)
  return text.startsWith('-') ? -BigInt(digits) : BigInt(digits)
}

/**
 * One text for each decimal value: 1.10, 1.1 and 11e-1 are "1.1"; 20, 20.0 and 2e1 are "20"; -0 is "0". Written without
 * an exponent unless that takes more than 100 zeros.
 */
export function canonicalNumber(text: string): string {
  const { negative, digits, exponent } = parseDecimal(text)
  if (digits === '') return '0'
  return (negative ? '-' : '') + unsignedText(digits, exponent)
}

function unsignedText(digits: string, exponent: bigint): string {
  const point = BigInt(digits.length) + exponent
  if (exponent > MOST_PADDING || point < -MOST_PADDING) return `${digits}e${exponent}`
  if (exponent >= 0n) return digits + '0'.repeat(Number(exponent))
  if (point <= 0n) return `0.${'0'.repeat(Number(-point))}${digits}`
  return `${digits.slice(0, Number(point))}.${digits.slice(Number(point))}`
}

/** The whole number within 64 bits that a text writes in its one canonical way; null for any other text. */
export function integerIn(text: string): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const number = BigInt.asIntN(64, BigInt(text))
  return String(number) === text ? number : null
}

// A pattern like /0+$/ takes quadratic time on a long run of zeros that does not reach the end.
function endOfDigits(digits: string): number {
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === 48) end--
  return end
}

/** A record as JSON, its names sorted: equal records give equal texts. */
export function sortedJson(record: Readonly<Record<string, unknown>>): string {
  const sorted = Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(Object.fromEntries(sorted))
}

/**
 * Whether two JSON values are the same: the order of fields does not count, numbers are compared by value (1.10 is
 * 1.1), a missing field differs from null.
 * @param ignore Dotted paths of fields that are not compared, present or not. They lead through objects, not into
 *   arrays; a name that itself has dots matches as plain text.
 */
export function sameJson(a: JsonValue, b: JsonValue, ignore: ReadonlySet<string>): boolean {
  return differingFields(a, b, ignore).next().done === true
}

/**
 * The fields in which two values differ by `sameJson`, each as its names from the value down, in the order of the first one's fields;
 * none where they are the same. Lists are compared as a whole, and so is a value that is an object on one side only.
 * @param ignore As for `sameJson`.
 */
export function* differingFields(
  a: JsonValue,
  b: JsonValue,
  ignore: ReadonlySet<string>,
  at: readonly string[] = [],
): Generator<string[]> {
  if (!isJsonObject(a) || !isJsonObject(b)) {
    if (!sameValue(a, b)) yield [...at]
    return
  }
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const path = [...at, name]
    if (ignore.has(path.join('.'))) continue
    const [left, right] = [ownField(a, name), ownField(b, name)]
    if (left === undefined || right === undefined) yield path
    else yield* differingFields(left, right, ignore, path)
  }
}

/** Of values that are not both objects. */
function sameValue(a: JsonValue, b: JsonValue): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((value, index) => sameJson(value, b[index] ?? null, NO_FIELDS))
  return isNumber(a) && isNumber(b) && canonicalNumber(numberText(a)) === canonicalNumber(numberText(b))
}

const NO_FIELDS: ReadonlySet<string> = new Set()

function isNumber(value: JsonValue): value is number | RawNumber {
  return typeof value === 'number' || isRawNumber(value)
}

/** Only the object's own fields: a field may be called `constructor`. */
function ownField(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
