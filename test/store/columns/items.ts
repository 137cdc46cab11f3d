import { parseExact } from '../../../src/json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../src/json/value.ts'

/** The item of a JSON text. */
export function item(text: string): JsonObject {
  const value = parseExact(text)
  if (!isJsonObject(value)) throw new Error(`not an object: ${text}`)
  return value
}
