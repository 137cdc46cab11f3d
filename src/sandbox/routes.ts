import { STATUS_CODES } from 'node:http'
import type { Organization } from './data.ts'
import { createEnvelope, PAGE_SIZE, phpJson } from './envelope.ts'
import { carriedFilters, type Filters, parseQuery, readFilters, requestedPage } from './selection.ts'

/** The parts of a request that matter here; header names in lower case. */
export interface Request {
  method: string
  /** Path and query as on the request line. */
  target: string
  headers: Record<string, string | string[] | undefined>
}

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

/** One list at the present moment. */
export interface Listing {
  /** The indexes of the items that pass, in the order in which they are shown. */
  find: (filters: Filters) => Uint32Array
  itemAt: (index: number) => Record<string, unknown>
}

export type CollectionName = 'orders' | 'establishments'

export interface Api {
  organizations: readonly Organization[]
  listing: (organization: Organization, collection: CollectionName) => Listing
  /** Counts a user's request, or refuses it; null: no limit. */
  throttle: ((token: string) => Verdict) | null
  requestsPerMinute: number
}

const LISTS = new Map<string, CollectionName>([
  ['/api/v1/admin/orders', 'orders'],
  ['/api/v1/admin/establishments', 'establishments'],
])

/** Answers a request. The checks have Laravel's order: path, method, token, limit, organization. */
export function answer(api: Api, request: Request): Answer {
  const { path } = splitTarget(request.target)
  const collection = LISTS.get(path)
  if (collection === undefined) return refuse(request, 404, `The route ${path.slice(1)} could not be found.`)
  if (request.method !== 'GET') {
    const refusal = refuse(request, 405, `The ${request.method} method is not supported for this route.`)
    return withHeaders(refusal, { Allow: 'GET' })
  }
  const user = api.organizations.find(({ token }) => token === bearerToken(request))
  if (user === undefined) return refuse(request, 401, 'Unauthenticated.')
  if (api.throttle === null) return answerMember(api, user, collection, request)

  const verdict = api.throttle(user.token)
  const limits = limitHeaders(verdict, api.requestsPerMinute)
  if (!verdict.allowed) return withHeaders(refuse(request, 429, 'Too Many Attempts.'), limits)
  return withHeaders(answerMember(api, user, collection, request), limits)
}

/** The part that counts against the limit, refusals included. */
function answerMember(api: Api, user: Organization, collection: CollectionName, request: Request): Answer {
  const id = header(request, 'x-service-organization') ?? ''
  if (id === '') return refuse(request, 400, 'The X-SERVICE-ORGANIZATION header is required.')
  const organization = api.organizations.find((known) => known.id === id.toLowerCase())
  if (organization === undefined) return refuse(request, 404, 'Organization not found.')
  if (organization !== user) return refuse(request, 403, 'You are not a member of this organization.')
  return answerList(api.listing(organization, collection), collection, request)
}

function answerList(listing: Listing, collection: CollectionName, request: Request): Answer {
  const { path, search } = splitTarget(request.target)
  const query = parseQuery(search)
  const filters = readFilters(query)
  if (typeof filters === 'string') {
    const errors = { [filters]: [`The ${filters.replace('_', ' ')} is not a valid date.`] }
    return refuse(request, 422, 'The given data was invalid.', { errors })
  }
  const page = requestedPage(query)
  const found = listing.find(filters)
  const shown = found.subarray((page - 1) * PAGE_SIZE, page * PAGE_SIZE)
  const items = Array.from(shown, listing.itemAt)
  // Laravel takes the host of links from the request: the one that the client, or a proxy, used.
  const url = `http://${header(request, 'host') ?? 'localhost'}${path}`
  const message = `${collection.charAt(0).toUpperCase()}${collection.slice(1)} retrieved successfully.`
  return jsonAnswer(
    200,
    createEnvelope({ page, total: found.length, url, filters: carriedFilters(query), items, message }),
  )
}

/** JSON whatever the request accepts. */
function jsonAnswer(status: number, value: unknown): Answer {
  return { status, headers: { 'Content-Type': 'application/json' }, body: phpJson(value) }
}

/** JSON if that is what the request accepts first, else a page for people, as Laravel does. */
function refuse(request: Request, status: number, message: string, more: object = {}): Answer {
  const [first = ''] = (header(request, 'accept') ?? '').split(',')
  if (/[/+]json/.test(first)) return jsonAnswer(status, { message, ...more })
  const title = `${status} | ${STATUS_CODES[status] ?? 'Error'}`
  const body = `<!DOCTYPE html>\n<html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`
  return { status, headers: { 'Content-Type': 'text/html; charset=UTF-8' }, body }
}

function limitHeaders(verdict: Verdict, limit: number): Record<string, string> {
  const headers = {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': verdict.allowed ? String(verdict.remaining) : '0',
  }
  if (verdict.allowed) return headers
  return { ...headers, 'Retry-After': String(verdict.retryAfter), 'X-RateLimit-Reset': String(verdict.reset) }
}

function splitTarget(target: string): { path: string; search: string } {
  const [path = '', ...rest] = target.split('?')
  return { path: path.replace(/\/+$/, ''), search: rest.join('?') }
}

function bearerToken(request: Request): string | undefined {
  return /^Bearer (.+)$/i.exec(header(request, 'authorization') ?? '')?.[1]
}

function header(request: Request, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function withHeaders(plain: Answer, headers: Record<string, string>): Answer {
  return { ...plain, headers: { ...plain.headers, ...headers } }
}

/** Whether a request is allowed, and how many remain in the window or how long to wait. */
export type Verdict =
  | { allowed: true; remaining: number }
  /** Whole seconds, and epoch seconds; both rounded up. */
  | { allowed: false; retryAfter: number; reset: number }

const WINDOW = 60_000

/**
 * Laravel's limiter: for each key a window of a minute, which starts with the first request counted. A refused request
 * is not counted and does not prolong the window. Returns a function of the key and the time (epoch ms).
 */
export function createThrottle(limit: number): (key: string, now: number) => Verdict {
  const windows = new Map<string, { end: number; hits: number }>()
  return (key, now) => {
    const open = windows.get(key)
    const current = open !== undefined && now < open.end ? open : { end: now + WINDOW, hits: 0 }
    if (current.hits >= limit) {
      return {
        allowed: false,
        retryAfter: Math.ceil((current.end - now) / 1000),
        reset: Math.ceil(current.end / 1000),
      }
    }
    current.hits += 1
    windows.set(key, current)
    return { allowed: true, remaining: limit - current.hits }
  }
}
