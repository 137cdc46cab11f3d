import { z } from 'zod'
import type { Item } from '../sync/types.ts'
import { printable } from '../text.ts'
import { type CutBody, readBody } from './body.ts'
import { EnvelopeError } from './envelope-error.ts'
import { count, isWholeList } from './whole-list.ts'

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
 */
export function readEnvelope(body: CutBody): Envelope {
  const { json, items } = readBody(body)
  if (Array.isArray(json)) return { items, paging: null }
  if (!isRecord(json)) throw new EnvelopeError(`the answer is ${describe(json)}, not a list`)
  if (json.success === false) throw new EnvelopeError(`the answer says "success": false${messageOf(json)}`)
  if (!Object.hasOwn(json, 'data')) throw new EnvelopeError(`the answer has no "data"${messageOf(json)}`)
  assertList(body, json.data)
  return { items, paging: isPaged(json, items.length) ? readPaging(json) : null }
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

function assertList({ elements }: CutBody, data: unknown): void {
  if (!elements) throw new EnvelopeError(`"data" is ${describe(data)}, not a list`)
  // PHP writes a list with holes as an object whose keys are numbers. Any other object is one thing and not a list.
  const stranger = elements.find(({ slice: { key } }) => key !== null && !/^\d+$/.test(key))
  if (stranger)
    throw new EnvelopeError(
      `"data" is an object with the field ${printable(`${stranger.slice.key}`, 40)}, not a list`,
    )
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
