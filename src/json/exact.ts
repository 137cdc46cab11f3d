import { canonicalNumber, isJsonObject, type JsonValue } from './value.ts'

/** What may be a number that a double does not hold: one of 16 digits, or with an exponent. Texts may look like one, too. */
const CANDIDATE = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|[\d.]+[eE])/

/** JSON.parse that keeps the text of every number that a double does not hold, or that is beyond 64 bits. Throws what JSON.parse throws. */
export function parseExact(text: string): JsonValue {
  if (hasEscapedName(text)) return parseMarked(text)
  // A reviver takes ten times as long, and most pages have no such number.
  return CANDIDATE.test(text) ? JSON.parse(text, keepExact) : JSON.parse(text)
}

function keepExact(_name: string, value: JsonValue, { source = '' }: { source?: string }): JsonValue {
  return typeof value !== 'number' || isHeld(value, source) ? value : JSON.rawJSON(source)
}

/** Whether a double that was read from this text has the same value, within 64 bits: a column has a greater one as it was written. */
function isHeld(double: number, source: string): boolean {
  const text = String(double)
  return Math.abs(double) < 2 ** 63 && (text === source || canonicalNumber(text) === canonicalNumber(source))
}

/** From a backslash to the end of its text, and the colon behind it if that is a name. A choice for each character would overflow the stack of a long text. */
const END_OF_TEXT = /[^"\\]*(?:\\.[^"\\]*)*"\s*(:?)/sy

function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', END_OF_TEXT.lastIndex)) {
    END_OF_TEXT.lastIndex = at
    const found = END_OF_TEXT.exec(text)
    if (found === null) return false
    if (found[1]) return true
  }
  return false
}

const TEXT = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?/gs

/** Makes a name longer. */
const MARK = ' (a name)'

/**
 * Node 24 takes the second name of `{"h":1,"\t":2}` for the line break that it has read in `{"h":1,"\n":0}`, and `C:\/` for `C:\\`. It confuses
 * no names that end with more than an escape.
 */
function parseMarked(text: string): JsonValue {
  // Only of JSON it is known which texts are names.
  JSON.parse(text)
  const marked = text.replace(TEXT, (found, inside: string, colon: string | undefined) =>
    colon === undefined ? found : `"${inside}${MARK}"${colon}`,
  )
  return JSON.parse(marked, (name, value, context) => keepExact(name, unmarked(value), context))
}

function unmarked(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name.slice(0, -MARK.length), field]),
  )
}
