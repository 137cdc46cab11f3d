import { z } from 'zod'
import { JobError } from '../errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../json/value.ts'
import type { Collection, Item, Page } from '../sync/types.ts'
import { printable } from '../text.ts'
import { notTheList, parseBody, saidIn } from './body.ts'
import type { Response } from './http.ts'
import type { RateHeaders } from './rate/headers.ts'

/** Returns the page of a 2xx response. Throws JobError or RetryableError, whose message does not name the page. */
export function readPage(
  response: Response,
  announced: RateHeaders,
  page: number,
  totals: Collection['total'],
): Page {
  const { items, paging } = readEnvelope(parseBody(response.body), totals)
  if (!paging && page > 1) {
    throw notTheList(
      `asked for page ${page}, but got a list without pages: the API no longer pages this list, so an open walk must start over: ` +
        'run backfill --restart, or wait until the walk has stood still for resumeWithin',
    )
  }
  if (paging && paging.currentPage !== null && paging.currentPage !== page)
    throw notTheList(`asked for page ${page}, but got page ${paging.currentPage}`)
  const next = paging ? nextPage(paging.next, page) : null
  const lastPage = paging?.lastPage ?? null
  if (next !== null && lastPage !== null && page > lastPage && items.length === 0) {
    throw notTheList(
      `the answer has no items, names page ${next} as the next one, and says that the last page is ${lastPage}: ` +
        'the list does not end',
    )
  }
  return {
    number: page,
    items,
    next,
    total: paging?.total ?? null,
    lastPage,
    paginated: paging !== null,
    announcedLimit: announced.limit || null,
  }
}

export interface Envelope {
  items: Item[]
  /** Null if the whole list came in one response, without paging. */
  paging: Paging | null
}

export interface Paging {
  /** `links.next` as it was sent; undefined if `links` has no such field. */
  next: JsonValue | undefined
  currentPage: number | null
  lastPage: number | null
  total: number | null
}

// Servers that copy a number from the request send it as text.
const count = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number),
])

/** What cannot be read as a number of pages counts as missing: nothing depends on it. */
const pages = count.nullable().catch(null)

// If two sources set a field, Laravel merges both into a list: such a number cannot be trusted and counts as missing.
const total = z.union([count, z.array(z.unknown()).transform(() => null)]).nullish()

const Meta = z.object({ current_page: pages, last_page: pages, total })

/** Servers write a truth value in many ways; anything else is a no. */
const AFFIRMATIVE = /^"?(?:true|1|yes|y|on|ok|success)"?$/i

/**
 * Reads the paginated envelope, the plain one (`data` without `links` and without a sign of more pages), or a bare list.
 * @param totals `ignore`: `meta.total` may be anything.
 */
export function readEnvelope(json: JsonValue, totals: Collection['total']): Envelope {
  if (Array.isArray(json)) return { items: json.map(itemOf), paging: null }
  if (!isJsonObject(json)) throw notTheList(`the answer is ${kindOf(json)}, not a list`)
  if (Object.hasOwn(json, 'success') && !AFFIRMATIVE.test(JSON.stringify(json.success)))
    throw notTheList(`the answer says "success": ${shown(json.success)}${messageOf(json)}`)
  if (!Object.hasOwn(json, 'data')) throw notTheList(`the answer has no "data"${messageOf(json)}`)
  const items = listIn(json.data ?? null).map(itemOf)
  return { items, paging: isPaged(json, items.length, totals) ? readPaging(json, totals) : null }
}

function listIn(data: JsonValue): JsonValue[] {
  if (Array.isArray(data)) return data
  if (!isJsonObject(data)) throw notTheList(`"data" is ${kindOf(data)}, not a list`)
  // PHP writes a list with gaps as an object with numbers as keys. Any other object is not a list.
  const stranger = Object.keys(data).find((name) => !/^\d+$/.test(name))
  if (stranger === undefined) return Object.values(data)
  throw notTheList(`"data" is an object with the field ${printable(stranger, 40)}, not a list`)
}

function itemOf(value: JsonValue): Item {
  if (isDeeper(value, DEEPEST)) throw notTheList(`an item is nested deeper than ${DEEPEST} levels`)
  return { text: JSON.stringify(value), value }
}

/** SQLite's JSON functions stop at 1,000 levels, and one such row would make every view of its table's lists fail. */
const DEEPEST = 500

function isDeeper(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1))
}

/** Fields that lead to a next page. */
const NEXT = ['next', 'next_page_url', 'next_cursor', 'cursor', 'has_more']

/** Fields that only paginators write: a list with one of them and without `links` may have more pages. */
const PAGING = ['current_page', 'last_page', 'per_page', 'total', ...NEXT]

function isPaged(envelope: JsonObject, items: number, totals: Collection['total']): boolean {
  const { links = null, meta = null } = envelope
  if (isJsonObject(links)) return true
  // PHP writes an empty object as an empty list. Anything else may be the links of a page, damaged on the way.
  if (links !== null && !(Array.isArray(links) && links.length === 0))
    throw notTheList(`"links" is ${kindOf(links)}, not an object`)
  const names = PAGING.filter((name) => name !== 'total' || totals === 'check')
  const fields = [envelope, ...(isJsonObject(meta) ? [meta] : [])].flatMap((place) =>
    names.filter((name) => Object.hasOwn(place, name)).map((name) => [name, place[name] ?? null] as const),
  )
  if (fields.length === 0 || isWhole(fields, items)) return false
  const found = [...new Set(fields.map(([name]) => name))].join(', ')
  throw notTheList(`the answer is paged (it has ${found}) but has no "links" to follow`)
}

/** True if the fields say that this is all: the total is the number of items, or this is page 1 of 1, and none contradicts that. */
function isWhole(fields: readonly (readonly [string, JsonValue])[], items: number): boolean {
  const says = (name: string, value: number) =>
    fields.some(([one, found]) => one === name && count.safeParse(found).data === value)
  const agree = fields.every(([name, found]) => {
    if (found === null || name === 'per_page') return true
    if (NEXT.includes(name)) return found === false || found === ''
    return count.safeParse(found).data === (name === 'total' ? items : 1)
  })
  return agree && (says('total', items) || (says('current_page', 1) && says('last_page', 1)))
}

function readPaging({ links, meta }: JsonObject, totals: Collection['total']): Paging {
  const { total: sent, ...rest } = meta !== undefined && isJsonObject(meta) ? meta : {}
  const checked = Meta.safeParse({
    current_page: null,
    last_page: null,
    ...rest,
    total: totals === 'check' ? sent : null,
  })
  if (!checked.success)
    throw notTheList(
      `meta.total is ${shown(sent)}, which is no number of items; if the total of this list means nothing, set total: ignore`,
    )
  const { current_page: currentPage, last_page: lastPage, total: known = null } = checked.data
  const next =
    links !== undefined && isJsonObject(links) && Object.hasOwn(links, 'next') ? links.next : undefined
  return { next, currentPage, lastPage, total: known }
}

/**
 * The page that a `links.next` names; null at the end of the list. Nothing else of the link is read: each page is asked for at
 * `baseUrl` with the configured filters, since proxies rewrite links, and paginators leave filters out of them.
 * Throws LINK_REFUSED.
 */
export function nextPage(next: unknown, currentPage: number): number | null {
  if (next === null) return null
  if (next === undefined) throw refused('is missing, so the end of the list is unknown')
  const url = typeof next === 'string' ? URL.parse(next, 'http://relative') : null
  const [text = '', ...more] = url?.searchParams.getAll('page') ?? []
  if (more.length > 0) throw refused('names two pages')
  // Only a plain number: PHP reads 02 or 2.0 as page 1. Any other text is not shown, since it may repeat what was sent.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) throw refused('names no page')
  if (Number(text) !== currentPage + 1) throw refused(`leads from page ${currentPage} to page ${text}`)
  return currentPage + 1
}

function refused(how: string): JobError {
  return new JobError('LINK_REFUSED', `links.next ${how}`)
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return isJsonObject(value) ? 'an object' : `a ${typeof value === 'object' ? 'number' : typeof value}`
}

function shown(value: JsonValue | undefined): string {
  return printable(JSON.stringify(value ?? null), 40)
}

function messageOf(json: JsonObject): string {
  const said = saidIn(json)
  return said === null ? '' : ` (message: ${printable(said)})`
}
