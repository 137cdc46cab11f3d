import { z } from 'zod'
import { JobError } from '../errors.ts'
import type { Item, Page } from '../sync/types.ts'
import { printable } from '../text.ts'
import { parseBody, type SplitBody, splitBody } from './body.ts'
import type { Response } from './http.ts'
import type { LinkReader } from './links.ts'
import type { RateHeaders } from './rate/headers.ts'
import { MINUTE_MS } from './rate/window.ts'
import { notTheList } from './response-errors.ts'

/** What a page is checked against: its size, and where links may lead. */
export interface PageRules {
  maxResponseBytes: number
  readLink: LinkReader
}

/** Returns the page of a 2xx response. Throws JobError or RetryableError, whose message does not name the page. */
export function readPage(response: Response, announced: RateHeaders, page: number, rules: PageRules): Page {
  const envelope = readEnvelope(splitBody(response.body, rules.maxResponseBytes))
  const paging = envelope.paging
  if (paging && paging.currentPage !== null && paging.currentPage !== page) {
    throw notTheList(`asked for page ${page}, but got page ${paging.currentPage}`)
  }
  if (!paging && page > 1) {
    throw notTheList(
      `asked for page ${page}, but got a list without pages: the API no longer pages this list, so an open walk must start over: ` +
        'run backfill --restart, or wait until the walk has stood still for resumeWithin',
    )
  }
  const next = nextPage(envelope, page, rules.readLink)
  if (next !== null && paging?.lastPage != null && page > paging.lastPage && envelope.items.length === 0) {
    throw notTheList(
      `the answer has no items, names page ${next} as the next one, and says that the last page is ${paging.lastPage}: ` +
        'the list does not end',
    )
  }
  return {
    number: page,
    items: envelope.items,
    next,
    total: paging?.total ?? null,
    lastPage: paging?.lastPage ?? null,
    paginated: paging !== null,
    announcedLimit: announced.limit || null,
    announcedLeft:
      announced.limit && announced.remaining !== null
        ? { requests: announced.remaining, freshMs: Math.min(announced.resetMs ?? MINUTE_MS, MINUTE_MS) }
        : null,
  }
}

function nextPage({ paging }: Envelope, currentPage: number, readLink: LinkReader): number | null {
  const next = paging ? paging.next : null
  if (next === null) return null
  if (next === undefined)
    throw new JobError('LINK_REFUSED', 'links.next is missing, so the end of the list is unknown')
  const verdict = readLink(next, currentPage)
  if ('refused' in verdict) throw new JobError('LINK_REFUSED', verdict.refused)
  return verdict.page
}

export interface Envelope {
  items: Item[]
  /** Null if the whole list came in one response, without paging. */
  paging: Paging | null
}

export interface Paging {
  /** `links.next` as it was sent: null on the last page, undefined if `links` has no such field. */
  next: string | null | undefined
  currentPage: number | null
  lastPage: number | null
  total: number | null
}

// Servers that copy a number from the request send it as text. If two sources set a field, Laravel merges both
// into a list: such a number cannot be trusted and counts as missing.
const countField = z
  .union([
    z.int().min(0),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
    z.array(z.unknown()).transform(() => null),
  ])
  .nullish()
  .transform((value) => value ?? null)

// Without the other fields, since zod takes twice the time for objects that keep unknown ones.
const PagedEnvelope = z.object({
  links: z.object({ next: z.string().nullish() }),
  meta: z.object({ current_page: countField, last_page: countField, total: countField }).default({
    current_page: null,
    last_page: null,
    total: null,
  }),
})

/** Fields that lead to a next page. */
const NEXT = ['next', 'next_page_url', 'next_cursor', 'cursor', 'has_more']

/** Fields that only paginators write: a list with one of them and without `links` may have more pages. */
const PAGING = ['current_page', 'last_page', 'per_page', 'total', ...NEXT]

/** What such fields may say if the list is whole all the same. */
const WholeList = z.looseObject({
  current_page: countField.pipe(z.literal([1, null])),
  last_page: countField.pipe(z.literal([1, null])),
  total: countField,
  ...Object.fromEntries(NEXT.map((name) => [name, z.literal([null, false, '']).optional()])),
})

/**
 * Reads the body of a 2xx response: the paginated envelope, the plain one (`data` without `links` and without
 * a sign of more pages), or a bare list. Throws JobError, with a message of its own for each defect.
 */
export function readEnvelope(body: SplitBody): Envelope {
  const { json, items } = parseBody(body)
  if (Array.isArray(json)) return { items, paging: null }
  if (!isRecord(json)) throw notTheList(`the answer is ${kindOfJson(json)}, not a list`)
  if (json.success === false) throw notTheList(`the answer says "success": false${messageOf(json)}`)
  if (!Object.hasOwn(json, 'data')) throw notTheList(`the answer has no "data"${messageOf(json)}`)
  assertList(body, json.data)
  return { items, paging: isPaged(json, items.length) ? readPaging(json) : null }
}

function isPaged(envelope: Record<string, unknown>, items: number): boolean {
  const { links } = envelope
  if (isRecord(links)) return true
  // PHP writes an empty object as an empty list. Anything else may be the links of a page, damaged on the way.
  if (links !== undefined && links !== null && !(Array.isArray(links) && links.length === 0))
    throw notTheList(`"links" is ${kindOfJson(links)}, not an object`)
  const meta = isRecord(envelope.meta) ? envelope.meta : {}
  const found = [...PAGING.filter((name) => name in envelope), ...PAGING.filter((name) => name in meta)]
  if (found.length === 0 || isWholeList([envelope, meta], items)) return false
  throw notTheList(
    `the answer is paged (it has ${[...new Set(found)].join(', ')}) but has no "links" to follow`,
  )
}

/** True if the total is the number of items, or this is page 1 of 1, and no other field contradicts that. */
function isWholeList(places: readonly Record<string, unknown>[], items: number): boolean {
  const checked = places.map((place) => WholeList.safeParse(place))
  if (!checked.every(({ success }) => success)) return false
  const found = checked.flatMap(({ data }) => (data ? [data] : []))
  const totals = found.map(({ total }) => total).filter((total) => total !== null)
  if (totals.some((total) => total !== items)) return false
  return totals.length > 0 || found.some((place) => place.current_page === 1 && place.last_page === 1)
}

function readPaging(envelope: Record<string, unknown>): Paging {
  const checked = PagedEnvelope.safeParse(envelope)
  if (!checked.success) {
    const problems = checked.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw notTheList(`the answer is not the list envelope: ${printable(problems.join('; '))}`)
  }
  const { links, meta } = checked.data
  return { next: links.next, currentPage: meta.current_page, lastPage: meta.last_page, total: meta.total }
}

function assertList({ elements }: SplitBody, data: unknown): void {
  if (!elements) throw notTheList(`"data" is ${kindOfJson(data)}, not a list`)
  // PHP writes a list with gaps as an object with numbers as keys. Any other object is not a list.
  const stranger = elements.find(({ slice: { key } }) => key !== null && !/^\d+$/.test(key))
  if (stranger)
    throw notTheList(
      `"data" is an object with the field ${printable(`${stranger.slice.key}`, 40)}, not a list`,
    )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function kindOfJson(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function messageOf(envelope: Record<string, unknown>): string {
  const { message } = envelope
  return typeof message === 'string' && message !== '' ? ` (message: ${printable(message)})` : ''
}
