import { BACKSLASH, COLON, QUOTE, skipString } from './scan.ts'
import type { JsonObject, JsonValue } from './value.ts'

const SPACE = /\s*/y
const TOKEN = /[-\d][-+.\deE]*|true|false|null|[{}[\],:]/y

/**
 * Whether a valid JSON text writes the name of a field with an escape. JSON.parse of Node 24 may confuse such names:
 * after `{"h":[],"\\":0}` it reads the second name of `{"h":1,"\n":2}` as a backslash.
 */
export function hasEscapedName(text: string): boolean {
  let at = text.indexOf('\\')
  while (at >= 0) {
    at = afterString(text, at)
    if (text.charCodeAt(at) === COLON) return true
    at = text.indexOf('\\', at)
  }
  return false
}

/** The index of what follows the string around `from`, white space skipped. */
function afterString(text: string, from: number): number {
  let at = from
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  do at++
  while (/\s/.test(text.charAt(at)))
  return at
}

/** Parses a valid JSON text token by token: right for every name, and slow. */
export function readEscapedNames(text: string, readNumber: (text: string) => JsonValue): JsonValue {
  const next = createTokens(text)
  const read = (token: string): JsonValue => {
    if (token === '{') return readObject(next, read)
    if (token === '[') return readArray(next, read)
    return /^[-\d]/.test(token) ? readNumber(token) : JSON.parse(token)
  }
  return read(next())
}

/** The pattern leaves strings out: one of many megabytes is too long for it. */
function createTokens(text: string): () => string {
  let at = 0
  return () => {
    const start = endOf(SPACE, text, at)
    at = text.charCodeAt(start) === QUOTE ? skipString(text, start) : endOf(TOKEN, text, start)
    return text.slice(start, at)
  }
}

/** The index behind the match of the pattern at `at`; `at` itself without a match. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function readArray(next: () => string, read: (token: string) => JsonValue): JsonValue[] {
  const values: JsonValue[] = []
  for (let token = next(); token !== ']'; token = next()) if (token !== ',') values.push(read(token))
  return values
}

function readObject(next: () => string, read: (token: string) => JsonValue): JsonObject {
  const object: JsonObject = {}
  for (let token = next(); token !== '}'; token = next()) {
    if (token === ',') continue
    const name: string = JSON.parse(token)
    next()
    // An assignment to `__proto__` would not create a field.
    Object.defineProperty(object, name, {
      value: read(next()),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return object
}
