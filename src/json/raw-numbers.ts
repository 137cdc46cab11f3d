import { COLON } from './characters.ts'
import type { JsonObject, JsonValue, RawNumber } from './exact.ts'
import { skipNumber } from './inexact.ts'
import { skipSpace } from './spaces.ts'

/** Begins a text that stands for a number. No other text of the JSON begins so: that is looked at first. */
const MARK = '\0'
const WRITTEN_MARK = '\\u0000'

/**
 * JSON.parse where some numbers have to keep their text: these are put into quotes, read as texts, and exchanged
 * afterwards. A reviver, which has JSON.parse say how each number was written, takes six times as long for an order of 1
 * kB. Undefined for what has to be read that way all the same. Throws a SyntaxError where JSON.parse does.
 * @param starts Where these numbers begin.
 */
export function parseRawNumbers(text: string, starts: readonly number[]): JsonValue | undefined {
  if (text.includes(WRITTEN_MARK)) return undefined
  const numbers: RawNumber[] = []
  let marked = ''
  let copied = 0
  for (const start of starts) {
    const end = skipNumber(text, start)
    assertNoName(text, end)
    marked += `${text.slice(copied, start)}"${WRITTEN_MARK}${numbers.length}"`
    copied = end
    // Throws where this is no number.
    numbers.push(JSON.rawJSON(text.slice(start, end)))
  }
  const value: JsonValue = JSON.parse(marked + text.slice(copied))
  return exchanged(value, { numbers, left: numbers.length })
}

/** Once it is in quotes a number would pass for the name of a field. Anywhere else it is valid if a text is. */
function assertNoName(text: string, end: number): void {
  if (text.charCodeAt(skipSpace(text, end)) === COLON) throw new SyntaxError('a number cannot name a field')
}

interface Exchange {
  numbers: readonly RawNumber[]
  /** How many were not met yet. Of two fields with one name the first is never met. */
  left: number
}

function exchanged(value: JsonValue, exchange: Exchange): JsonValue {
  if (typeof value === 'string' && value.startsWith(MARK)) {
    exchange.left--
    return exchange.numbers[Number(value.slice(MARK.length))] ?? value
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) exchangeElements(value, exchange)
  else exchangeFields(value as JsonObject, exchange)
  return value
}

function exchangeElements(list: JsonValue[], exchange: Exchange): void {
  for (let index = 0; index < list.length && exchange.left > 0; index++) {
    const value = list[index]
    if (value !== undefined) list[index] = exchanged(value, exchange)
  }
}

function exchangeFields(object: JsonObject, exchange: Exchange): void {
  for (const name of Object.keys(object)) {
    if (exchange.left === 0) return
    const before = object[name]
    if (before === undefined) continue
    const after = exchanged(before, exchange)
    // A field called `__proto__` is the object's own by now, so that it can be assigned to.
    if (after !== before) object[name] = after
  }
}
