import { isUtf8 } from 'node:buffer'
import type { JsonValue } from '../json/exact.ts'
import type { Recognized } from '../sync/types.ts'
import { counted, printable } from '../text.ts'
import { EnvelopeError } from './envelope-error.ts'
import { breaksOff, type Outline, outline } from './items.ts'
import type { ItemSource } from './list-item.ts'

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
  /** What stands between the list's brackets, if its elements can be read one by one; null else. */
  inner: Outline['inner']
}

/** One element of the list. */
export interface Element {
  /** Its name, where the list is written as an object. */
  key: string | null
  text: string
}

/** The JSON of an answer. */
export interface Body {
  /** The list in it is left empty where not all of its elements had to be read. */
  json: unknown
  items: readonly ItemSource[]
}

/** The bytes of an answer as text. Throws EnvelopeError for what is no text, breaks off, or would take too much to read. */
export function cutBody(bytes: Uint8Array, maxResponseBytes: number): CutBody {
  const text = decode(bytes)
  const { slices, inner } = findItems(text, maxResponseBytes)
  const elements = slices?.map(({ key, start, end }) => ({ key, text: text.slice(start, end) })) ?? null
  return { text, elements, inner }
}

/**
 * Reads the JSON of an answer, and of its items those that are not recognized. Throws EnvelopeError.
 * @param recognized One entry an element; or none at all.
 */
export function readBody(body: CutBody, recognized: readonly (Recognized | null)[]): Body {
  const around = recognized.some((one) => one !== null) ? readAround(body, recognized) : null
  return around ?? readWhole(body)
}

function readWhole({ text, elements }: CutBody): Body {
  const json = parse(text)
  const list: unknown = Array.isArray(json) ? json : listUnderData(json)
  const parsed: readonly JsonValue[] = Array.isArray(list) ? list : []
  const items = elements?.map((element, index) => ({
    text: element.text,
    parsed: parsed[index],
    recognized: null,
  }))
  return { json, items: items ?? [] }
}

function listUnderData(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'data' in json ? json.data : undefined
}

/**
 * The same, read around the items that are recognized: their text was JSON when it was kept, and a body is JSON if it is
 * with an empty list, and each item is. Null where that cannot be done, or something is no JSON, of which the whole text
 * has more to say.
 */
function readAround(
  { text, elements, inner }: CutBody,
  recognized: readonly (Recognized | null)[],
): Body | null {
  if (!elements || !inner) return null
  try {
    const json: unknown = JSON.parse(text.slice(0, inner.start) + text.slice(inner.end))
    const items = elements.map((element, index) => {
      const known = recognized[index] ?? null
      return { text: element.text, parsed: known ? undefined : JSON.parse(element.text), recognized: known }
    })
    return { json, items }
  } catch {
    return null
  }
}

/**
 * Where the items stand, if the text is valid JSON. Asked before JSON.parse, to which
 * each of millions of levels or values costs a hundred bytes: a text with so many is refused.
 */
function findItems(text: string, maxResponseBytes: number): Pick<Outline, 'slices' | 'inner'> {
  const mostValues = maxResponseBytes / BYTES_A_VALUE
  const mostItems = maxResponseBytes / BYTES_AN_ITEM
  const { depth, values, items, slices, inner } = outline(text, mostItems)
  if (depth <= DEEPEST && values <= mostValues && items <= mostItems) return { slices, inner }
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
  return /^\s*[[{]/.test(text) && breaksOff(text.trimStart())
}

function brokenOff(bytes: number): EnvelopeError {
  return new EnvelopeError(`the answer breaks off after ${bytes} bytes`, true)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const start = text.trimStart()
    if (start.startsWith('<'))
      throw new EnvelopeError(`the answer is a page of HTML, not JSON${titleOf(start)}`)
    if (isBrokenOff(start)) throw brokenOff(Buffer.byteLength(text))
    throw new EnvelopeError(`the answer is not JSON: ${printable(start, 80)}`)
  }
}

function titleOf(html: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(html.slice(0, 10_000))?.[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}
