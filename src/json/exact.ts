import { hasEscapedName, readEscapedNames } from './escaped-names.ts'
import { parseRawNumbers } from './raw-numbers.ts'

declare const exact: unique symbol

/** A number whose text a JavaScript number would not give back: 20 digits, 1.10, 1e400, -0. JSON.stringify writes it as it came. */
export interface RawNumber {
  readonly rawJSON: string
  readonly [exact]: true
}

/** Any JSON value without loss: a plain number is one whose source text equals `String(value)`, every other is a RawNumber. */
export type JsonValue = null | boolean | string | number | RawNumber | JsonValue[] | JsonObject

export interface JsonObject {
  [name: string]: JsonValue
}

declare global {
  // ECMAScript's "JSON.parse source text access", which TypeScript's library does not describe yet.
  interface JSON {
    rawJSON(text: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

// A superset, and never a miss: numbers of 16 and more characters (fewer digits always come back as they were), -0,
// fractions that end in 0, exponents, and fractions that JavaScript writes with an exponent. What must stand before
// and behind a number keeps times in texts (09.000000Z) from counting.
const MAY_BE_INEXACT =
  /[:,[\s](?:-0(?=[,\]}\s]|$)|-?(?:\d[\d.]{15}|\d+\.\d*0(?=[,\]}\s]|$)|\d+(?:\.\d+)?[eE][-+]?\d|0\.0{6}))/

const EACH_INEXACT = new RegExp(MAY_BE_INEXACT, 'g')

/** Whether a valid JSON text may hold a number that a plain JSON.parse changes. False is certain, true is not. */
export function mayHoldInexactNumber(text: string): boolean {
  return isBareNumber(text) || MAY_BE_INEXACT.test(text)
}

function isBareNumber(text: string): boolean {
  const first = text.charCodeAt(0)
  return first === 45 || (first >= 48 && first <= 57)
}

/** JSON.parse that keeps every number's text, and every field's name. Throws the SyntaxError of JSON.parse. */
export function parseExact(text: string): JsonValue {
  const value = mayHoldInexactNumber(text) ? parseNumbers(text) : (JSON.parse(text) as JsonValue)
  return hasEscapedName(text) ? readEscapedNames(text, exactNumber) : value
}

function parseNumbers(text: string): JsonValue {
  const value = isBareNumber(text) ? undefined : parseRawNumbers(text, EACH_INEXACT, exactNumber)
  return value ?? (JSON.parse(text, keepText) as JsonValue)
}

// The context is optional only because TypeScript's library does not know it. It has no source where V8 took a name for
// another (see `hasEscapedName`).
function keepText(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? exactNumber(context.source) : value
}

function exactNumber(source: string): number | RawNumber {
  return source === String(Number(source)) ? Number(source) : JSON.rawJSON(source)
}

export function isRawNumber(value: JsonValue): value is RawNumber {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value)
}

/** Whether the value is a JSON object: no list, no null, and no RawNumber, which is an object only for JavaScript. */
export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

/** A number as it was written. */
export function numberText(number: number | RawNumber): string {
  return typeof number === 'number' ? String(number) : number.rawJSON
}
