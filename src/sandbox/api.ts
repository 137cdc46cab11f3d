import type { IncomingMessage } from 'node:http'
import { createDice, createEstablishment, createOrder, orderState, uuid } from './items.ts'

export interface SandboxOptions {
  /** Of each organization, when it begins. */
  orders: number
  /** Of each organization. */
  establishments: number
  organizations: number
  /** Of each token; 0: no limit. */
  requestsPerMinute: number
  /** New orders come while it runs. Otherwise nothing ever changes. */
  live: boolean
  /** Epoch milliseconds. */
  now: () => number
}

export interface Organization {
  id: string
  name: string
  /** The token of its only member. It is visibly made up. */
  token: string
}

interface Answer {
  status: number
  headers: Record<string, string>
  body: object
}

type Request = Pick<IncomingMessage, 'url' | 'headers'>

/** Fixed by the API: a client cannot change it. */
const PAGE_SIZE = 25

/** With `live`. */
const NEW_ORDER_EVERY_MS = 20_000

/** The made-up API: its organizations, and what it answers. The checks have Laravel's order: path, token, limit, organization. */
export function createApi(options: SandboxOptions) {
  const { orders, establishments, live, now } = options
  const began = now()
  const organizations = upTo(options.organizations).map(createOrganization)
  const throttle = createThrottle(options.requestsPerMinute)

  /** Those of the orders of an organization that there are at this moment. */
  function orderIndexes(organization: string, state: string | null): number[] {
    const come = live ? Math.max(0, Math.floor((now() - began) / NEW_ORDER_EVERY_MS)) : 0
    return upTo(orders + come).filter((index) => !state || orderState(organization, index) === state)
  }

  function answer({ url: target = '', headers }: Request): Answer {
    const of = (name: string) => [headers[name]].flat()[0] ?? ''
    const url = new URL(target, `http://${of('host') || 'localhost'}`)
    const name = /^\/api\/v1\/admin\/(orders|establishments)$/.exec(url.pathname)?.[1]
    if (name === undefined) return refuse(404, `The route ${url.pathname.slice(1)} could not be found.`)
    const user = organizations.find(({ token }) => of('authorization') === `Bearer ${token}`)
    if (!user) return refuse(401, 'Unauthenticated.')
    const { isAllowed, headers: limits } = throttle(user, now())
    if (!isAllowed) return refuse(429, 'Too Many Attempts.', limits)
    const asked = of('x-service-organization').toLowerCase()
    if (asked === '') return refuse(400, 'The X-SERVICE-ORGANIZATION header is required.', limits)
    const organization = organizations.find(({ id }) => id === asked)
    if (!organization) return refuse(404, 'Organization not found.', limits)
    if (organization !== user) return refuse(403, 'You are not a member of this organization.', limits)
    const body =
      name === 'orders'
        ? pageOf(orderIndexes(user.name, url.searchParams.get('state')), url, (index) =>
            createOrder(user.name, index, establishments),
          )
        : pageOf(upTo(establishments), url, (index) => createEstablishment(user.name, index))
    const message = `${name.charAt(0).toUpperCase()}${name.slice(1)} retrieved successfully.`
    return { status: 200, headers: limits, body: { ...body, success: true, message } }
  }

  return { organizations, answer }
}

const NAMES = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'soylent', 'tyrell', 'wonka']

/** With a token in the form of Laravel's Sanctum: its number, a bar, 40 letters and digits. */
function createOrganization(index: number): Organization {
  const name = NAMES[index] ?? `org-${index + 1}`
  const word = `sandbox${name.charAt(0).toUpperCase()}${name.slice(1).replace('-', '')}MadeUp`
  const dice = createDice(name)
  const id = uuid(dice)
  return { id, name, token: `${index + 1}|${word}${dice.digits(40 - word.length)}` }
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

/** A page of a list, with the names and the order of Laravel's paginator. Links carry the filters of the request. */
function pageOf(
  indexes: readonly number[],
  { origin, pathname, searchParams }: URL,
  itemAt: (index: number) => object,
): object {
  const url = origin + pathname
  const asked = Number(searchParams.get('page'))
  const page = Number.isSafeInteger(asked) && asked > 0 ? asked : 1
  const lastPage = Math.max(1, Math.ceil(indexes.length / PAGE_SIZE))
  const link = (number: number) => {
    const carried = new URLSearchParams([...searchParams].filter(([key]) => key !== 'page'))
    carried.set('page', String(number))
    return `${url}?${carried.toString()}`
  }
  const before = (page - 1) * PAGE_SIZE
  const data = indexes.slice(before, before + PAGE_SIZE).map(itemAt)
  const isEmpty = data.length === 0
  return {
    data,
    links: {
      first: link(1),
      last: link(lastPage),
      prev: page > 1 ? link(page - 1) : null,
      next: page < lastPage ? link(page + 1) : null,
    },
    meta: {
      current_page: page,
      from: isEmpty ? null : before + 1,
      last_page: lastPage,
      links: [],
      path: url,
      per_page: PAGE_SIZE,
      to: isEmpty ? null : before + data.length,
      total: indexes.length,
    },
  }
}

function refuse(status: number, message: string, headers: Record<string, string> = {}): Answer {
  return { status, headers, body: { message } }
}

const WINDOW = 60_000

/** Laravel's limiter: for each user a window of a minute, which begins with the first request counted; a refused one is not. */
function createThrottle(limit: number) {
  const windows = new Map<Organization, { end: number; hits: number }>()
  return (user: Organization, now: number): { isAllowed: boolean; headers: Record<string, string> } => {
    if (limit === 0) return { isAllowed: true, headers: {} }
    const open = windows.get(user)
    const current = open && now < open.end ? open : { end: now + WINDOW, hits: 0 }
    windows.set(user, current)
    const isAllowed = current.hits < limit
    if (isAllowed) current.hits++
    const left = { 'X-RateLimit-Limit': `${limit}`, 'X-RateLimit-Remaining': `${limit - current.hits}` }
    const wait = {
      'Retry-After': `${Math.ceil((current.end - now) / 1000)}`,
      'X-RateLimit-Reset': `${Math.ceil(current.end / 1000)}`,
    }
    return { isAllowed, headers: isAllowed ? left : { ...left, ...wait } }
  }
}
