import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { JobError, RetryableError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../json/value.ts'
import type { Collection, Item, Page } from '../sync/types.ts'
import { printable } from '../text.ts'
import type { Response } from './http.ts'
import { LOOK, textOf, titleOf, whatItSays } from './response-errors.ts'

type Answer = Pick<Response, 'body' | 'headers'>

/**
 * Returns the page of a 2xx response: the paginated envelope, the plain one (`data` without `links` and without a sign of more pages),
 * or a bare list. Throws JobError or RetryableError, whose message does not name the page.
 */
export function readPage(response: Answer, page: number, totals: Collection['total']): Page {
  const json = parseBody(response)
  const envelope = Array.isArray(json) ? { data: json } : json
  const { data, links, meta } = checked(envelope)
  const items = (data as JsonValue[]).map(itemOf)
  if (!links || Array.isArray(links)) {
    refuseIfPaged(envelope as JsonObject, items.length, totals)
    const unpaged = { number: page, next: null, total: null, isUnpaged: true } as const
    // All of it is page 1: a later one is past the end.
    return page === 1 ? { ...unpaged, items, lastPage: null } : { ...unpaged, items: [], lastPage: 1 }
  }
  const { current_page: currentPage, last_page: lastPage } = meta
  // Past the end some APIs answer with the last page: here it is an empty one, as from the others.
  const isPastEnd = links.next === null && currentPage === lastPage && page > (lastPage ?? page)
  if (currentPage !== null && currentPage !== page && !isPastEnd)
    throw notTheList(`asked for page ${page}, but got page ${currentPage}`)
  const total = totals === 'check' ? totalOf(meta.total) : null
  return { number: page, items: isPastEnd ? [] : items, next: nextPage(links.next, page), total, lastPage }
}

/** For a 2xx response that is not the requested list. */
function notTheList(message: string): JobError {
  return new JobError('BAD_RESPONSE', message)
}

/** Returns the JSON of a body, its numbers exact. Throws BAD_RESPONSE, to be tried again where the body breaks off. */
function parseBody({ body, headers }: Answer): JsonValue {
  const text = textOf({ body })
  if (text === '') throw notTheList(`the answer is empty; ${LOOK}`)
  try {
    const json = parseExact(text)
    if (isUtf8(body)) return json
  } catch (error) {
    if (error instanceof RangeError) throw notTheList(TOO_DEEP)
    if (breaksOff(text, error as Error))
      throw new RetryableError(
        'BAD_RESPONSE',
        `the answer breaks off after ${body.length} bytes; if it stays so, ${LOOK}`,
      )
    const title = titleOf(text)
    if (title !== null) throw notTheList(`the answer is a page of HTML, not JSON${title}; ${LOOK}`)
    // Without V8's piece of the text, which may hold items.
    const reason = (error as Error).message.replace(/, (?:\.{3})?".*/s, '')
    const type = printable(String(headers['content-type'] ?? 'no type'), 60)
    throw notTheList(`the answer is not JSON (${reason}; ${body.length} bytes of ${type}); ${LOOK}`)
  }
  throw notTheList(`the answer is not UTF-8 text; ${LOOK}`)
}

/** True if a list or object is not valid JSON since it ends too soon: V8 says so, or names the end as the place. */
function breaksOff(text: string, { message }: Error): boolean {
  const [, place] = /at position (\d+)/.exec(message) ?? []
  const isAtEnd = /^(?:Unexpected end|Unterminated|Bad Unicode escape)/.test(message)
  return /^[[{]/.test(text) && (isAtEnd || Number(place) === text.length)
}

/** Servers that copy a number from the request send it as text. */
const count = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number),
])

/** What cannot be read as a number of pages counts as missing: nothing depends on it. */
const pages = count.nullable().catch(null)

/** Servers write a truth value in many ways; anything else is a no. */
const AFFIRMATIVE = /^"?(?:true|1|yes|y|on|ok|success)"?$/i

const Meta = z.object({ current_page: pages, last_page: pages, total: z.unknown().optional() })

const Envelope = z.object(
  {
    success: z.custom((sent) => AFFIRMATIVE.test(JSON.stringify(sent)), 'says no').optional(),
    data: z.union(
      [
        z.array(z.unknown()),
        // PHP writes a list with gaps as an object with numbers as keys.
        z.record(z.string().regex(/^\d+$/), z.unknown()).transform((data) => Object.values(data)),
      ],
      'is not a list',
    ),
    // PHP writes an empty object as an empty list.
    links: z.union([z.object({ next: z.unknown().optional() }), z.tuple([])], 'is not an object').nullish(),
    meta: Meta.catch({ current_page: null, last_page: null, total: null }),
  },
  'is not a list',
)

/** The known fields of an answer. The error names the first that is wrong, and what the answer says. */
function checked(json: JsonValue): z.infer<typeof Envelope> {
  const { data, error } = Envelope.safeParse(json)
  if (data) return data
  const [issue] = error.issues
  const field = issue?.path[0] === undefined ? '' : `'s "${String(issue.path[0])}"`
  throw notTheList(`the answer${field} ${issue?.message}${whatItSays(JSON.stringify(json))}`)
}

function totalOf(sent: unknown): number | null {
  // If two sources set a field, Laravel merges both into a list: such a number cannot be trusted and counts as missing.
  if (Array.isArray(sent)) return null
  const { data, success } = count.nullish().safeParse(sent)
  if (success) return data ?? null
  throw notTheList(
    `meta.total is ${printable(JSON.stringify(sent), 40)}, which is no number of items; if the total of this list means nothing, set total: ignore`,
  )
}

/** Fields that lead to a next page. */
const NEXT = ['next', 'next_page_url', 'next_cursor', 'cursor', 'has_more']

/** Fields that only paginators write. */
const PAGING = ['current_page', 'last_page', 'per_page', 'total', ...NEXT]

/** A list without links is whole if nothing is said of pages, or all that is said is that there is one page, or so many items. */
function refuseIfPaged(json: JsonObject, items: number, totals: Collection['total']): void {
  const { meta = null } = json
  const places = isJsonObject(meta) ? [json, meta] : [json]
  const names = PAGING.filter((name) => name !== 'total' || totals === 'check')
  const found = names.filter((name) => places.some((place) => Object.hasOwn(place, name)))
  if (found.length === 0) return
  const said = (name: string) => (found.includes(name) ? places.flatMap((place) => place[name] ?? []) : [])
  const agrees = (name: string, only: number) => said(name).every((one) => Number(one) === only)
  const isOnly = agrees('total', items) && agrees('last_page', 1) && agrees('current_page', 1)
  const isSaid = said('total').length + said('last_page').length > 0
  if (isOnly && isSaid && NEXT.every((name) => said(name).every((one) => !one))) return
  throw notTheList(`the answer is paged (it has ${found.join(', ')}) but has no "links" to follow`)
}

function itemOf(value: JsonValue): Item {
  try {
    return { text: JSON.stringify(value), value }
  } catch {
    throw notTheList(TOO_DEEP)
  }
}

/** Thousands of levels, for which the stack has no room. */
const TOO_DEEP = 'the answer is nested too deeply'

/**
 * The page that a `links.next` names; null at the end of the list. Nothing else of the link is read: each page is asked for at
 * `baseUrl` with the configured filters, since proxies rewrite links, and paginators leave filters out of them.
 * Throws LINK_REFUSED.
 */
function nextPage(next: unknown, currentPage: number): number | null {
  if (next === null) return null
  if (next === undefined) throw refused('is missing, so the end of the list is unknown')
  const url = typeof next === 'string' ? URL.parse(next, 'http://relative') : null
  const named = url?.searchParams.getAll('page') ?? []
  // As a text: PHP reads 02 or 2.0 as page 1.
  if (named.length === 1 && named[0] === String(currentPage + 1)) return currentPage + 1
  // The rest of the link is not shown, since it may repeat what was sent.
  const found = named.every((page) => /^\d{1,15}$/.test(page)) ? named.slice(0, 2).join(' and ') : ''
  throw refused(`names page ${found || 'none'} instead of page ${currentPage + 1}`)
}

function refused(how: string): JobError {
  return new JobError('LINK_REFUSED', `links.next ${how}; ${LOOK}`)
}
