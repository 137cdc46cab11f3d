import { hasEscapedName, readEscapedNames } from './escaped-names.ts'
import { findInexactNumbers, isInexact } from './inexact.ts'
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

/** JSON.parse that keeps every number's text, and every field's name. Throws a SyntaxError where JSON.parse does. */
export function parseExact(text: string): JsonValue {
  return parseExactAt(text, findInexactNumbers(text))
}

/**
 * The same for a text of which it is known already what `findInexactNumbers` finds in it. That need not be numbers in a
 * text that is not valid JSON.
 */
export function parseExactAt(text: string, inexact: readonly number[]): JsonValue {
  const value: JsonValue = inexact.length === 0 ? JSON.parse(text) : parseNumbers(text, inexact)
  return hasEscapedName(text) ? readEscapedNames(text, exactNumber) : value
}

function parseNumbers(text: string, inexact: readonly number[]): JsonValue {
  return parseRawNumbers(text, inexact) ?? (JSON.parse(text, keepText) as JsonValue)
}

// The context is optional only because TypeScript's library does not know it. It has no source where V8 took a name for
// another (see `hasEscapedName`).
function keepText(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? exactNumber(context.source) : value
}

function exactNumber(source: string): number | RawNumber {
  return isInexact(source, 0, source.length) ? JSON.rawJSON(source) : Number(source)
}

export function isRawNumber(value: JsonValue): value is RawNumber {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value)
}

/** The value, of which it is known that it is an object. Throws where it is not. */
export function asJsonObject(value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value
  throw new Error('the value is no object')
}

/** Whether the value is a JSON object: no list, no null, and no RawNumber, which is an object only for JavaScript. */
export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

/** A number as it was written. */
export function numberText(number: number | RawNumber): string {
  return typeof number === 'number' ? String(number) : number.rawJSON
}
