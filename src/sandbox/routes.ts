import { type Answer, errorAnswer, jsonAnswer } from './answer.ts'
import { createEnvelope, PAGE_SIZE } from './envelope.ts'
import type { Filters } from './finder.ts'
import type { Organization } from './organizations.ts'
import { carriedFilters, parseQuery, readFilters, requestedPage } from './query.ts'
import type { Selection } from './selection.ts'
import type { Verdict } from './throttle.ts'

/** The parts of a request that matter here; header names in lower case. */
export interface Request {
  method: string
  /** Path and query as on the request line. */
  target: string
  headers: Record<string, string | string[] | undefined>
}

/** One list as a route sees it, at the present moment. */
export interface Listing {
  find: (filters: Filters) => Selection
  itemAt: (index: number) => Record<string, unknown>
}

export type CollectionName = 'orders' | 'establishments'

export interface Api {
  organizations: readonly Organization[]
  /** One list of an organization as it is now. */
  listing: (organization: Organization, collection: CollectionName) => Listing
  /** Counts a request of a user, or refuses it; null: without a limit. */
  throttle: ((token: string) => Verdict) | null
  requestsPerMinute: number
}

const LISTS = new Map<string, CollectionName>([
  ['/api/v1/admin/orders', 'orders'],
  ['/api/v1/admin/establishments', 'establishments'],
])

/** Answers a request. The checks come in the order of a real Laravel server: path, method, token, limit, organization. */
export function answer(api: Api, request: Request): Answer {
  const { path } = splitTarget(request.target)
  const refuse = (status: number, message: string) => errorAnswer(header(request, 'accept'), status, message)
  const collection = LISTS.get(path)
  if (collection === undefined) return refuse(404, `The route ${path.slice(1)} could not be found.`)
  if (request.method !== 'GET') {
    const refusal = refuse(405, `The ${request.method} method is not supported for this route.`)
    return withHeaders(refusal, { Allow: 'GET' })
  }
  const user = api.organizations.find(({ token }) => token === bearerToken(request))
  if (user === undefined) return refuse(401, 'Unauthenticated.')
  if (api.throttle === null) return answerMember(api, user, collection, request)

  const verdict = api.throttle(user.token)
  const limits = limitHeaders(verdict, api.requestsPerMinute)
  if (!verdict.allowed) return withHeaders(refuse(429, 'Too Many Attempts.'), limits)
  return withHeaders(answerMember(api, user, collection, request), limits)
}

/** What is counted against the limit, refusals too. */
function answerMember(api: Api, user: Organization, collection: CollectionName, request: Request): Answer {
  const refuse = (status: number, message: string) => errorAnswer(header(request, 'accept'), status, message)
  const id = header(request, 'x-service-organization') ?? ''
  if (id === '') return refuse(400, 'The X-SERVICE-ORGANIZATION header is required.')
  const organization = api.organizations.find((known) => known.id === id.toLowerCase())
  if (organization === undefined) return refuse(404, 'Organization not found.')
  if (organization !== user) return refuse(403, 'You are not a member of this organization.')
  return answerList(api.listing(organization, collection), collection, request)
}

function answerList(listing: Listing, collection: CollectionName, request: Request): Answer {
  const { path, search } = splitTarget(request.target)
  const query = parseQuery(search)
  const filters = readFilters(query)
  if (filters === null) {
    const errors = { created_from: ['The created from is not a valid date.'] }
    return errorAnswer(header(request, 'accept'), 422, 'The given data was invalid.', { errors })
  }
  const page = requestedPage(query)
  const { total, indexAt } = listing.find(filters)
  const first = (page - 1) * PAGE_SIZE
  const length = Math.max(0, Math.min(PAGE_SIZE, total - first))
  const items = Array.from({ length }, (_, offset) => listing.itemAt(indexAt(first + offset)))
  // Laravel builds links from the request, so they name the host that the client, or a proxy, used.
  const url = `http://${header(request, 'host') ?? 'localhost'}${path}`
  const message = `${collection.charAt(0).toUpperCase()}${collection.slice(1)} retrieved successfully.`
  return jsonAnswer(200, createEnvelope({ page, total, url, filters: carriedFilters(query), items, message }))
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
