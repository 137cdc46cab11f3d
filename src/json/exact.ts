import type { JsonObject, JsonValue, RawNumber } from './value.ts'

/** JSON.parse that keeps every number's text and every field's name. Throws a SyntaxError where JSON.parse does. */
export function parseExact(text: string): JsonValue {
  return parseExactAt(text, findInexactNumbers(text))
}

/** The same for a text whose `findInexactNumbers` are known. In invalid JSON these need not be numbers. */
export function parseExactAt(text: string, inexact: readonly number[]): JsonValue {
  // A text that could hold MARK itself is parsed only to know that it is valid.
  const isPlain = inexact.length === 0 || text.includes(WRITTEN_MARK)
  const value: JsonValue = isPlain ? JSON.parse(text) : parseRawNumbers(text, inexact)
  const isWhole = inexact.length === 0 || !isPlain
  return isWhole && !hasEscapedName(text) ? value : readTokens(text, exactNumber)
}

function exactNumber(source: string): number | RawNumber {
  return isInexact(source, 0, source.length) ? JSON.rawJSON(source) : Number(source)
}

/** Begins a text that replaces a number. No other text holds it. */
const MARK = '\0'
const WRITTEN_MARK = '\\u0000'

/**
 * JSON.parse that keeps the text of some numbers: it puts them into quotes, and replaces the parsed texts afterwards. A
 * reviver takes six times as long for an order of 1 kB. Throws a SyntaxError where JSON.parse does.
 * @param starts Where these numbers begin.
 */
function parseRawNumbers(text: string, starts: readonly number[]): JsonValue {
  const numbers: RawNumber[] = []
  let marked = ''
  let copied = 0
  for (const start of starts) {
    const end = skipNumber(text, start)
    assertNoName(text, end)
    marked += `${text.slice(copied, start)}"${WRITTEN_MARK}${numbers.length}"`
    copied = end
    // Throws if this is not a number.
    numbers.push(JSON.rawJSON(text.slice(start, end)))
  }
  const value: JsonValue = JSON.parse(marked + text.slice(copied))
  return restored(value, numbers)
}

/** In quotes a number would pass for the name of a field. Anywhere else it is valid if a text is. */
function assertNoName(text: string, end: number): void {
  if (text.charCodeAt(skipSpace(text, end)) === COLON) throw new SyntaxError('a number cannot name a field')
}

/** The value with the numbers in place of their marks; lists and objects are changed themselves. */
function restored(value: JsonValue, numbers: readonly RawNumber[]): JsonValue {
  if (typeof value === 'string' && value.startsWith(MARK))
    return numbers[Number(value.slice(MARK.length))] ?? value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) value[index] = restored(element, numbers)
    return value
  }
  const fields = value as JsonObject
  for (const name of Object.keys(fields)) {
    const before = fields[name] ?? null
    const after = restored(before, numbers)
    // JSON.parse made a field called `__proto__` the object's own, so it can be assigned to.
    if (after !== before) fields[name] = after
  }
  return value
}

const SPACE = /\s*/y
const JSON_TOKEN = /[-\d][-+.\deE]*|true|false|null|[{}[\],:]/y

/**
 * Whether a valid JSON text writes the name of a field with an escape. JSON.parse of Node 24 may confuse such names:
 * after `{"h":[],"\\":0}` it reads the second name of `{"h":1,"\n":2}` as a backslash.
 */
function hasEscapedName(text: string): boolean {
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
export function readTokens(text: string, readNumber: (text: string) => JsonValue): JsonValue {
  const next = createTokenizer(text)
  const read = (token: string): JsonValue => {
    if (token === '{') return readObject(next, read)
    if (token === '[') return readArray(next, read)
    return /^[-\d]/.test(token) ? readNumber(token) : JSON.parse(token)
  }
  return read(next())
}

/** The pattern leaves strings out: one of many megabytes is too long for it. */
function createTokenizer(text: string): () => string {
  let at = 0
  return () => {
    const start = endOfMatch(SPACE, text, at)
    at = text.charCodeAt(start) === QUOTE ? skipString(text, start) : endOfMatch(JSON_TOKEN, text, start)
    return text.slice(start, at)
  }
}

/** The index behind the match of the pattern at `at`; `at` itself without a match. */
function endOfMatch(pattern: RegExp, text: string, at: number): number {
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

/** The characters that JSON is made of, as `charCodeAt` returns them. */
export const QUOTE = 34
const PLUS = 43
export const COMMA = 44
const MINUS = 45
const DOT = 46
const ZERO = 48
const NINE = 57
export const COLON = 58
const BIG_E = 69
export const OPEN_ARRAY = 91
const BACKSLASH = 92
export const CLOSE_ARRAY = 93
const SMALL_E = 101
export const OPEN_OBJECT = 123
export const CLOSE_OBJECT = 125

/** The index of the first character from `start` on that is not white space of JSON. */
export function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

export function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** The index behind the string that begins at `start`; behind the end of the text if the string is not closed. */
export function skipString(text: string, start: number): number {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (end !== -1 && isEscaped(text, end))
  return end === -1 ? text.length + 1 : end + 1
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}

/** Whether a number begins with this character, outside of strings. */
export function beginsNumber(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS
}

/** The index behind the number that begins at `start`; in invalid JSON behind what looks like one. */
export function skipNumber(text: string, start: number): number {
  let end = start + 1
  while (continuesNumber(text.charCodeAt(end))) end++
  return end
}

function continuesNumber(code: number): boolean {
  return beginsNumber(code) || code === DOT || code === SMALL_E || code === BIG_E || code === PLUS
}

/** Where the numbers begin that a plain JSON.parse would change; in invalid JSON, what looks like such numbers. */
export function findInexactNumbers(text: string): number[] {
  const starts: number[] = []
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (beginsNumber(code)) {
      const end = skipNumber(text, at)
      if (isInexact(text, at, end)) starts.push(at)
      at = end - 1
    }
  }
  return starts
}

/** Whether JSON.parse and JSON.stringify would not return this number as it is written. */
export function isInexact(text: string, start: number, end: number): boolean {
  const source = text.slice(start, end)
  return source !== String(Number(source))
}
