import { isUtf8 } from 'node:buffer'
import { type KnownError, RetryableError } from '../errors.ts'
import {
  beginsNumber,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isInexact,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  parseExactAt,
  QUOTE,
  skipNumber,
  skipSpace,
  skipString,
} from '../json/exact.ts'
import type { Item } from '../sync/types.ts'
import { counted, printable } from '../text.ts'
import { notTheList } from './response-errors.ts'

/** SQLite's JSON functions stop at 1,000 levels; no list of orders is this deep. */
const DEEPEST = 500

/**
 * The fewest bytes that a value, and an item, count for in `api.maxResponseBytes`. Small values take many times their own bytes of
 * memory, and parsing and writing a page blocks the event loop: for a microsecond or two a value, and 50 an item.
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
interface Element {
  slice: Slice
  text: string
}

interface Body {
  /** The JSON of the response, with 0 for each item. */
  json: unknown
  items: Item[]
}

/** Decodes and splits a body. Throws JobError if it is not text, breaks off, or would cost too much to parse. */
export function splitBody(bytes: Uint8Array, maxResponseBytes: number): SplitBody {
  const text = decode(bytes)
  const slices = findItems(text, maxResponseBytes)
  const elements = slices?.map((slice) => ({ slice, text: text.slice(slice.start, slice.end) })) ?? null
  return { text, elements }
}

/**
 * Parses each item by itself, and the rest without them: parsing items twice took a tenth of a first sync.
 * Throws JobError if a part is not JSON, since the body is not JSON then.
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
  if (depth > DEEPEST) throw notTheList(`the answer is nested deeper than ${DEEPEST} levels`)
  const tooMany = items > mostItems ? counted(items, 'item') : counted(values, 'value')
  throw notTheList(`the answer has ${tooMany}, too many for api.maxResponseBytes (${maxResponseBytes} bytes)`)
}

function decode(body: Uint8Array): string {
  if (!isUtf8(body))
    throw endsInCharacter(body) ? brokenOff(body.length) : notTheList('the answer is not UTF-8 text')
  const text = UTF_8.decode(body)
  if (text.trim() === '') throw notTheList('the answer is empty')
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

function brokenOff(bytes: number): RetryableError {
  return new RetryableError('BAD_RESPONSE', `the answer breaks off after ${bytes} bytes`)
}

function notJson(text: string): KnownError {
  const start = text.trimStart()
  if (start.startsWith('<')) return notTheList(`the answer is a page of HTML, not JSON${titleOf(start)}`)
  if (isBrokenOff(start)) return brokenOff(Buffer.byteLength(text))
  return notTheList(`the answer is not JSON: ${printable(start, 80)}`)
}

function titleOf(html: string): string {
  const head = html.slice(0, 10_000)
  const place = head.search(/<title/i)
  const element = place < 0 ? '' : (head.slice(place + 1).split('<', 1)[0] ?? '')
  const title = element.split('>', 2)[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}

/** The part of a body that is one item, and the item's key if the list is written as an object. */
interface Slice {
  key: string | null
  start: number
  end: number
  /** Starts, within the item, of the numbers that JSON.parse changes; for `parseExactAt`. */
  inexact: readonly number[]
}

/** What parsing a text would cost, and where its items are, judged by brackets and commas alone. */
interface Outline {
  /** Levels of nesting. */
  depth: number
  /** An upper bound of the number of values. */
  values: number
  /** An upper bound: elements of the top list, or of all lists and objects one level down, as `data` is. */
  items: number
  /**
   * The elements of the top list or of `data`, exactly as they were sent; null if there is no list. Correct
   * for valid JSON only, which JSON.parse has to check. Of two `data` fields the last counts, as for
   * JSON.parse.
   */
  slices: readonly Slice[] | null
}

/**
 * Scans a JSON text once, before it is parsed.
 * @param mostItems Items beyond these are counted, but have no slice.
 */
export function outline(text: string, mostItems: number): Outline {
  const listDepth = text.charCodeAt(skipSpace(text, 0)) === OPEN_ARRAY ? 1 : 2
  const cutter = createCutter(text, mostItems, listDepth === 1)
  let depth = 0
  let deepest = 0
  let values = 1
  let items = 1
  let nameStart = 0
  let nameEnd = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      nameStart = at
      nameEnd = skipString(text, at)
      at = nameEnd - 1
    } else if (code === COMMA) {
      values++
      if (depth === listDepth) {
        items++
        cutter.endItem(at)
      }
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      values++
      if (++depth > deepest) deepest = depth
      if (depth === listDepth) cutter.open(at)
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      if (depth-- === listDepth) cutter.close(at)
    } else if (code === COLON && depth <= listDepth) {
      if (depth === listDepth) cutter.beginItem(nameStart, nameEnd, at)
      else cutter.expect(fieldName(text, nameStart, nameEnd) === 'data')
      // So that a long name followed by many colons is not read for each of them.
      nameStart = nameEnd
    } else if (beginsNumber(code)) {
      const end = skipNumber(text, at)
      if (isInexact(text, at, end)) cutter.noteInexact(at)
      at = end - 1
    }
  }
  return { depth: deepest, values, items, slices: cutter.slices() }
}

/** Collects the slices of the expected list; `outline` calls it for each list that may be the one. */
function createCutter(text: string, mostItems: number, isExpectedFirst: boolean) {
  let slices: Slice[] | null = null
  let isExpected = isExpectedFirst
  let isOpen = false
  let key: string | null = null
  let start = 0
  let inexact: number[] = []

  function endItem(end: number): void {
    if (!isOpen || slices === null || slices.length >= mostItems) return
    const first = skipSpace(text, start)
    const within = inexact.map((at) => at - first)
    if (first < end) slices.push({ key, start: first, end: skipSpaceBack(text, end), inexact: within })
    beginAt(end + 1)
  }

  function beginAt(from: number): void {
    start = from
    inexact = []
  }

  return {
    /** Says whether the next value is the list. If so, an earlier one is dropped. */
    expect: (isNext: boolean) => {
      isExpected = isNext
      if (isNext) slices = null
    },
    open: (at: number) => {
      if (!isExpected) return
      isOpen = true
      slices = []
      key = null
      beginAt(at + 1)
    },
    beginItem: (nameStart: number, nameEnd: number, colon: number) => {
      if (!isOpen) return
      key = fieldName(text, nameStart, nameEnd)
      beginAt(colon + 1)
    },
    noteInexact: (at: number) => {
      if (isOpen) inexact.push(at)
    },
    endItem,
    close: (at: number) => {
      endItem(at)
      isOpen = false
      isExpected = false
    },
    slices: () => slices,
  }
}

/** The name of a field; empty if no string precedes the colon, and arbitrary in invalid JSON. */
function fieldName(text: string, start: number, end: number): string {
  // Before the first string both are 0: a slice to -1 would be the whole text, for each of its colons.
  if (start === end) return ''
  const written = text.slice(start + 1, end - 1)
  if (!written.includes('\\')) return written
  try {
    return JSON.parse(`"${written}"`)
  } catch {
    return written
  }
}

/** True if a text that is not valid JSON ends inside a value, so that it may have broken off. */
export function breaksOff(text: string): boolean {
  let depth = 0
  for (let at = skipSpace(text, 0); at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = skipString(text, at) - 1
      if (at >= text.length) return true
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++
    else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--
  }
  return depth > 0
}

/** The index behind the last character before `end` that is not white space. */
function skipSpaceBack(text: string, end: number): number {
  let at = end
  while (isSpace(text.charCodeAt(at - 1))) at--
  return at
}
