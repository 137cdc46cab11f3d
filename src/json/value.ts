declare const exact: unique symbol

/** A number that JavaScript would write in another way: 20 digits, 1.10, 1e400, -0. JSON.stringify writes its text. */
export interface RawNumber {
  readonly rawJSON: string
  readonly [exact]: true
}

/** Any JSON value without loss: a number whose text differs from `String(value)` is a RawNumber. */
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

export function isRawNumber(value: JsonValue): value is RawNumber {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value)
}

/** Whether the value is a JSON object: no list, no null, and no RawNumber, which is an object only for JavaScript. */
export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
}

/** Returns a value that is known to be an object; throws if it is none. */
export function asJsonObject(value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value
  throw new Error('the value is no object')
}

/** A number as it was written. */
export function numberText(number: number | RawNumber): string {
  return typeof number === 'number' ? String(number) : number.rawJSON
}
