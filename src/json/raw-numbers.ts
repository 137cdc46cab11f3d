import type { JsonObject, JsonValue, RawNumber } from './exact.ts'
import { skipString } from './strings.ts'

/** A whole JSON number, and that it ends here. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[,\]}\s])(?!\s*:)/y

/** Begins a text that stands for a number. No other text of the JSON begins so: that is looked at first. */
const MARK = '\0'
const WRITTEN_MARK = '\\u0000'

/**
 * JSON.parse where some numbers have to keep their text: these are put into quotes, read as texts, and exchanged
 * afterwards. A reviver, which has JSON.parse say how each number was written, takes six times as long for an order of 1
 * kB. Undefined for what has to be read that way all the same.
 * @param candidates Finds the numbers, each with the character before it, and perhaps what is none within a text.
 * @param read The number with this text; a plain one where nothing is lost.
 */
export function parseRawNumbers(
  text: string,
  candidates: RegExp,
  read: (text: string) => number | RawNumber,
): JsonValue | undefined {
  if (text.includes(WRITTEN_MARK)) return undefined
  const numbers: RawNumber[] = []
  let marked = ''
  let copied = 0
  // Each string is passed once, however many numbers stand behind it.
  let string = text.indexOf('"')
  candidates.lastIndex = 0
  for (let found = candidates.exec(text); found; found = candidates.exec(text)) {
    const start = found.index + 1
    let outside = start
    while (string !== -1 && string < start) {
      outside = skipString(text, string)
      string = text.indexOf('"', outside)
    }
    if (outside <= start) {
      NUMBER.lastIndex = start
      const [source] = NUMBER.exec(text) ?? []
      if (source === undefined) return undefined
      outside = start + source.length
      const number = read(source)
      if (typeof number === 'object') {
        marked += `${text.slice(copied, start)}"${WRITTEN_MARK}${numbers.push(number) - 1}"`
        copied = outside
      }
    }
    candidates.lastIndex = outside
  }
  const value: JsonValue = JSON.parse(copied === 0 ? text : marked + text.slice(copied))
  return numbers.length === 0 ? value : exchanged(value, { numbers, left: numbers.length })
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
    if (after === before) continue
    // To a field called `__proto__` nothing can be assigned; all others take that much better.
    if (name === '__proto__') Object.defineProperty(object, name, { ...FIELD, value: after })
    else object[name] = after
  }
}

const FIELD = { enumerable: true, configurable: true, writable: true }
