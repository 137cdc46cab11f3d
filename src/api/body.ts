import { isUtf8 } from 'node:buffer'
import { parseExactAt } from '../json/exact.ts'
import type { Item } from '../sync/types.ts'
import { counted, printable } from '../text.ts'
import { EnvelopeError } from './envelope-error.ts'
import { breaksOff, outline, type Slice } from './items.ts'

/** SQLite's own JSON functions stop at 1,000 levels; an answer this deep is no list of orders. */
const DEEPEST = 500

/**
 * What a value, and an item, takes of `api.maxResponseBytes` at least: so this bounds memory as well, which small values
 * take many times their bytes of, and the time for which a page keeps everything else waiting.
 */
const BYTES_A_VALUE = 8
const BYTES_AN_ITEM = 128

const UTF_8 = new TextDecoder()

/** The text of an answer, cut into the texts of its items before anything is made of it. */
export interface CutBody {
  text: string
  /** Null where there is no list of items. */
  elements: readonly Element[] | null
}

/** One element of the list. */
export interface Element {
  slice: Slice
  text: string
}

/** The JSON of an answer. */
export interface Body {
  /** With a zero for each of the items. */
  json: unknown
  items: Item[]
}

/** The bytes of an answer as text. Throws EnvelopeError for what is no text, breaks off, or would take too much to read. */
export function cutBody(bytes: Uint8Array, maxResponseBytes: number): CutBody {
  const text = decode(bytes)
  const slices = findItems(text, maxResponseBytes)
  const elements = slices?.map((slice) => ({ slice, text: text.slice(slice.start, slice.end) })) ?? null
  return { text, elements }
}

/**
 * Reads the JSON of an answer: each item by itself, and what is around them with a zero in the place of each. So nothing
 * is read twice, which took a tenth of a first sync. The body is JSON if all of these are. Throws EnvelopeError.
 */
export function readBody(body: CutBody): Body {
  const elements = body.elements ?? []
  try {
    // First what is little: nothing is made of the items of a body that breaks off.
    const json: unknown = JSON.parse(textAround(body.text, elements))
    return { json, items: elements.map(readItem) }
  } catch {
    throw notJson(body.text)
  }
}

function readItem({ slice, text }: Element): Item {
  return { text, value: parseExactAt(text, slice.inexact) }
}

/** The body with a zero for each of its items: commas too many, and all else that is wrong between them, stay in it. */
function textAround(body: string, elements: readonly Element[]): string {
  let around = ''
  let end = 0
  for (const { slice } of elements) {
    around += `${body.slice(end, slice.start)}0`
    end = slice.end
  }
  return around + body.slice(end)
}

/**
 * Where the items stand, if the text is valid JSON; null where it has no list of them. Asked before JSON.parse, to which
 * each of millions of levels or values costs a hundred bytes: a text with so many is refused.
 */
function findItems(text: string, maxResponseBytes: number): readonly Slice[] | null {
  const mostValues = maxResponseBytes / BYTES_A_VALUE
  const mostItems = maxResponseBytes / BYTES_AN_ITEM
  const { depth, values, items, slices } = outline(text, mostItems)
  if (depth <= DEEPEST && values <= mostValues && items <= mostItems) return slices
  if (isBrokenOff(text)) throw brokenOff(Buffer.byteLength(text))
  if (depth > DEEPEST) throw new EnvelopeError(`the answer is nested deeper than ${DEEPEST} levels`)
  const tooMany = items > mostItems ? counted(items, 'item') : counted(values, 'value')
  throw new EnvelopeError(
    `the answer has ${tooMany}, too many for api.maxResponseBytes (${maxResponseBytes} bytes)`,
  )
}

function decode(body: Uint8Array): string {
  if (!isUtf8(body))
    throw endsInCharacter(body) ? brokenOff(body.length) : new EnvelopeError('the answer is not UTF-8 text')
  const text = UTF_8.decode(body)
  if (text.trim() === '') throw new EnvelopeError('the answer is empty')
  return text
}

/** Whether all is well but for the last bytes, which begin a character and do not end it. */
function endsInCharacter(body: Uint8Array): boolean {
  const first = body.findLastIndex((byte) => byte >> 6 !== 0b10)
  const whole = body.subarray(0, first)
  return (
    (body[first] ?? 0) >= 0xc2 && body.length - first < 4 && isUtf8(whole) && isBrokenOff(UTF_8.decode(whole))
  )
}

function isBrokenOff(text: string): boolean {
  const start = text.trimStart()
  return (start.startsWith('[') || start.startsWith('{')) && breaksOff(start)
}

function brokenOff(bytes: number): EnvelopeError {
  return new EnvelopeError(`the answer breaks off after ${bytes} bytes`, true)
}

/** What to say of a text that is not JSON. */
function notJson(text: string): EnvelopeError {
  const start = text.trimStart()
  if (start.startsWith('<'))
    return new EnvelopeError(`the answer is a page of HTML, not JSON${titleOf(start)}`)
  if (isBrokenOff(start)) return brokenOff(Buffer.byteLength(text))
  return new EnvelopeError(`the answer is not JSON: ${printable(start, 80)}`)
}

function titleOf(html: string): string {
  const head = html.slice(0, 10_000)
  const place = head.search(/<title/i)
  const element = place < 0 ? '' : (head.slice(place + 1).split('<', 1)[0] ?? '')
  const title = element.split('>', 2)[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}
