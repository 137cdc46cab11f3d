import { isUtf8 } from 'node:buffer'
import { parseExactAt } from '../json/exact.ts'
import type { Item } from '../sync/types.ts'
import { counted, printable } from '../text.ts'
import { EnvelopeError } from './response-errors.ts'
import { breaksOff, outline, type Slice } from './split-items.ts'

/** SQLite's JSON functions stop at 1,000 levels; no list of orders is this deep. */
const DEEPEST = 500

/**
 * What a value, and an item, count for at least in `api.maxResponseBytes`. Small values take many times their bytes of memory, and
 * parsing and writing a page blocks the event loop: for a microsecond or two a value, and 50 an item.
 */
const BYTES_A_VALUE = 32
const BYTES_AN_ITEM = 1024

const UTF_8 = new TextDecoder()

/** The text of a response, split into the texts of its items and not parsed yet. */
export interface SplitBody {
  text: string
  /** Null if there is no list of items. */
  elements: readonly Element[] | null
}

/** One element of the list. */
export interface Element {
  slice: Slice
  text: string
}

export interface Body {
  /** The JSON of the response, with 0 for each item. */
  json: unknown
  items: Item[]
}

/** Decodes and splits a body. Throws EnvelopeError if it is no text, breaks off, or takes too much to parse. */
export function splitBody(bytes: Uint8Array, maxResponseBytes: number): SplitBody {
  const text = decode(bytes)
  const slices = findItems(text, maxResponseBytes)
  const elements = slices?.map((slice) => ({ slice, text: text.slice(slice.start, slice.end) })) ?? null
  return { text, elements }
}

/**
 * Parses each item by itself, and the rest without them: parsing items twice took a tenth of a first sync.
 * Throws EnvelopeError if a part is not JSON, since the body is not JSON then.
 */
export function parseBody(body: SplitBody): Body {
  const elements = body.elements ?? []
  try {
    // The small part first: a body that breaks off then costs no items.
    const json: unknown = JSON.parse(textAround(body.text, elements))
    return { json, items: elements.map(parseItem) }
  } catch {
    throw notJson(body.text)
  }
}

function parseItem({ slice, text }: Element): Item {
  return { text, value: parseExactAt(text, slice.inexact) }
}

/** The body with 0 for each item. Extra commas, and other errors between items, stay in it. */
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
 * The slices of the items if the text is valid JSON, or null if it has no list of them. Refuses a text with
 * millions of levels or values, for each of which JSON.parse would need about 100 bytes.
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

/** True if only the last character is incomplete, and the text before it breaks off. */
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
