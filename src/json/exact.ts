import { canonicalNumber, isJsonObject, type JsonValue } from './value.ts'

/** What may be a number that a double does not hold: one of 16 digits, or with an exponent. Texts may look like one, too. */
const CANDIDATE = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|[\d.]+[eE])/

/** The name of a field that is one escape and nothing else. */
const ESCAPE = /"(\\(?:u[\da-f]{4}|[^u]))"(?=\s*:)/gi

/** JSON.parse that keeps the text of every number that a double does not hold. Throws what JSON.parse throws. */
export function parseExact(text: string): JsonValue {
  // Node 24 may confuse such names: after `{"h":1,"\n":0}` it reads the second name of `{"h":1,"\t":2}` as a line break. Longer ones never.
  if (text.search(ESCAPE) >= 0)
    return JSON.parse(text.replace(ESCAPE, `"$1${MARK}"`), (name, value, context) =>
      keepExact(name, unmarked(value), context),
    )
  // A reviver takes ten times as long, and most pages have no such number.
  return CANDIDATE.test(text) ? JSON.parse(text, keepExact) : JSON.parse(text)
}

function keepExact(_name: string, value: JsonValue, { source = '' }: { source?: string }): JsonValue {
  return typeof value !== 'number' || isHeld(value, source) ? value : JSON.rawJSON(source)
}

/** Whether a double that was read from this text has the same value. */
function isHeld(double: number, source: string): boolean {
  const text = String(double)
  return text === source || (Number.isFinite(double) && canonicalNumber(text) === canonicalNumber(source))
}

/** Makes a name longer. */
const MARK = ' (one escape)'

function unmarked(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name.endsWith(MARK) ? name.slice(0, -MARK.length) : name,
      field,
    ]),
  )
}
