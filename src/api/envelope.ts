import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { parseExactAt } from '../json/exact.ts'
import type { Item } from '../sync/types.ts'
import { counted, printable } from '../text.ts'
import { breaksOff, outline, type Slice } from './items.ts'
import { count, isWholeList } from './whole-list.ts'

/** SQLite's own JSON functions stop at 1,000 levels; an answer this deep is no list of orders. */
const DEEPEST = 500

/**
 * What a value, and an item, takes of `api.maxResponseBytes` at least: so this bounds memory as well, which small values
 * take many times their bytes of, and the time for which a page keeps everything else waiting.
 */
const BYTES_A_VALUE = 8
const BYTES_AN_ITEM = 128

const UTF_8 = new TextDecoder()

/** An answer with status 200 that is not the list that was asked for. */
export class EnvelopeError extends Error {
  override readonly name = 'EnvelopeError'
  /** True for a body that broke off on its way: the same request may well be answered whole. */
  readonly passing: boolean

  constructor(message: string, passing = false) {
    super(message)
    this.passing = passing
  }
}

export interface Envelope {
  items: Item[]
  /** Null where the whole list came in one answer, without paging. */
  paging: Paging | null
}

export interface Paging {
  /** `links.next` as it was sent: null on the last page, undefined where `links` does not name it at all. */
  next: string | null | undefined
  currentPage: number | null
  lastPage: number | null
  total: number | null
}

// Other fields are left out, since zod reads an object of which it keeps them in twice the time.
const PagedEnvelope = z.object({
  links: z.object({ next: z.string().nullish() }),
  meta: z.object({ current_page: count, last_page: count, total: count }).default({
    current_page: null,
    last_page: null,
    total: null,
  }),
})

// Fields that only paginators write: a list with any of them and without `links` may end after its first page unseen.
const PAGING = [
  'current_page',
  'last_page',
  'per_page',
  'total',
  'next',
  'next_page_url',
  'next_cursor',
  'cursor',
  'has_more',
]

/**
 * Reads the body of an answer with status 200: the paginated envelope, the plain one (`data` without `links`, and without
 * a sign of further pages), or a bare list. Throws EnvelopeError, each defect in words of its own.
 * @param maxResponseBytes `api.maxResponseBytes`, which an answer may be too large for without being so long.
 */
export function readEnvelope(body: Uint8Array, maxResponseBytes: number): Envelope {
  const text = decode(body)
  const slices = findItems(text, maxResponseBytes)
  const { items, around: parsed } = parse(text, slices)
  if (Array.isArray(parsed)) return { items: listed(items, slices, parsed), paging: null }
  if (!isRecord(parsed)) throw new EnvelopeError(`the answer is ${describe(parsed)}, not a list`)
  if (parsed.success === false)
    throw new EnvelopeError(`the answer says "success": false${messageOf(parsed)}`)
  if (!Object.hasOwn(parsed, 'data')) throw new EnvelopeError(`the answer has no "data"${messageOf(parsed)}`)
  return {
    items: listed(items, slices, parsed.data),
    paging: isPaged(parsed, items.length) ? readPaging(parsed) : null,
  }
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
  return /^\s*[[{]/.test(text) && breaksOff(text.trimStart())
}

function brokenOff(bytes: number): EnvelopeError {
  return new EnvelopeError(`the answer breaks off after ${bytes} bytes`, true)
}

/**
 * Each item is read by itself, without loss, and what stands around them with a zero in the place of each: so nothing is
 * read twice, which an eighth of a first sync's work went into. The text is valid JSON if all of these are.
 */
function parse(text: string, slices: readonly Slice[] | null): { items: Item[]; around: unknown } {
  try {
    const items = (slices ?? []).map((slice) => readItem(text, slice))
    return { items, around: JSON.parse(textAround(text, slices ?? [])) }
  } catch {
    const start = text.trimStart()
    if (start.startsWith('<'))
      throw new EnvelopeError(`the answer is a page of HTML, not JSON${titleOf(start)}`)
    if (isBrokenOff(start)) throw brokenOff(Buffer.byteLength(text))
    throw new EnvelopeError(`the answer is not JSON: ${printable(start, 80)}`)
  }
}

function isPaged(envelope: Record<string, unknown>, items: number): boolean {
  if (isRecord(envelope.links)) return true
  const meta = isRecord(envelope.meta) ? envelope.meta : {}
  const found = [...PAGING.filter((name) => name in envelope), ...PAGING.filter((name) => name in meta)]
  if (found.length === 0 || isWholeList([envelope, meta], items)) return false
  throw new EnvelopeError(
    `the answer is paged (it has ${[...new Set(found)].join(', ')}) but has no "links" to follow`,
  )
}

function readPaging(envelope: Record<string, unknown>): Paging {
  const checked = PagedEnvelope.safeParse(envelope)
  if (!checked.success) {
    const problems = checked.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new EnvelopeError(`the answer is not the list envelope: ${printable(problems.join('; '))}`)
  }
  const { links, meta } = checked.data
  return { next: links.next, currentPage: meta.current_page, lastPage: meta.last_page, total: meta.total }
}

function readItem(body: string, { start, end, inexact }: Slice): Item {
  const text = body.slice(start, end)
  return { text, value: parseExactAt(text, inexact) }
}

/** The body with a zero for each item. */
function textAround(body: string, slices: readonly Slice[]): string {
  let around = ''
  let end = 0
  for (const slice of slices) {
    around += `${body.slice(end, slice.start)}0`
    end = slice.end
  }
  return around + body.slice(end)
}

function listed(items: Item[], slices: readonly Slice[] | null, data: unknown): Item[] {
  if (!slices) throw new EnvelopeError(`"data" is ${describe(data)}, not a list`)
  // PHP writes a list with holes as an object whose keys are numbers. Any other object is one thing and not a list.
  const stranger = slices.find((slice) => slice.key !== null && !/^\d+$/.test(slice.key))
  if (stranger)
    throw new EnvelopeError(
      `"data" is an object with the field ${printable(`${stranger.key}`, 40)}, not a list`,
    )
  return items
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function messageOf(envelope: Record<string, unknown>): string {
  const { message } = envelope
  return typeof message === 'string' && message !== '' ? ` (message: ${printable(message)})` : ''
}

function titleOf(html: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(html.slice(0, 10_000))?.[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}
