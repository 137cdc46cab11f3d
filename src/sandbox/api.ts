import { createDice, hash, uuid } from './dice.ts'
import { createEstablishment, createOrder, ORDER_EVERY, orderState, WORLD_START } from './items.ts'

export interface SandboxOptions {
  /** Of each organization, when it begins. */
  orders: number
  /** Of each organization. */
  establishments: number
  organizations: number
  /** Of each token; 0: no limit. */
  requestsPerMinute: number
  /** New orders come while it runs, and an older one changes now and then. Otherwise nothing ever changes. */
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

export interface Request {
  method: string
  /** Path and query as on the request line. */
  target: string
  /** By name in lower case. */
  headers: Record<string, string | string[] | undefined>
}

export interface Answer {
  status: number
  headers: Record<string, string>
  body: object
}

/** Fixed by the API: a client cannot change it. */
const PAGE_SIZE = 25

/** A list at one moment: the indexes of its items, and each of them. */
interface Listing {
  indexes: readonly number[]
  itemAt: (index: number) => object
}

/** The made-up API: its organizations, and what it answers. The checks have Laravel's order: path, method, token, limit, organization. */
export function createApi(options: SandboxOptions) {
  const { requestsPerMinute, now } = options
  const organizations = createOrganizations(options.organizations)
  const throttle = createThrottle(requestsPerMinute)
  const lists = new Map(
    organizations.map(({ id }, number) => [id, createLists(hash(301, 1, number), options)]),
  )

  function answer({ method, target, headers }: Request): Answer {
    const of = (name: string) => [headers[name]].flat()[0] ?? ''
    const { pathname, searchParams } = new URL(target, `http://${of('host') || 'localhost'}`)
    const name = /^\/api\/v1\/admin\/(orders|establishments)\/?$/.exec(pathname)?.[1]
    if (name !== 'orders' && name !== 'establishments')
      return refuse(404, `The route ${pathname.slice(1)} could not be found.`)
    if (method !== 'GET') return refuse(405, `The ${method} method is not supported for this route.`)
    const user = organizations.find(({ token }) => of('authorization') === `Bearer ${token}`)
    if (!user) return refuse(401, 'Unauthenticated.')
    const { isAllowed, headers: limits } = throttle(user.token, now())
    if (!isAllowed) return { ...refuse(429, 'Too Many Attempts.'), headers: limits }
    const asked = of('x-service-organization').toLowerCase()
    if (asked === '')
      return { ...refuse(400, 'The X-SERVICE-ORGANIZATION header is required.'), headers: limits }
    const list = lists.get(asked)?.[name]
    if (!list) return { ...refuse(404, 'Organization not found.'), headers: limits }
    if (asked !== user.id)
      return { ...refuse(403, 'You are not a member of this organization.'), headers: limits }
    const url = `http://${of('host') || 'localhost'}${pathname.replace(/\/$/, '')}`
    return {
      status: 200,
      headers: limits,
      body: createEnvelope(list(searchParams.get('state')), searchParams, url, name),
    }
  }

  return { organizations, answer }
}

const NAMES = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'soylent', 'tyrell', 'wonka']

/** Each with a token in the form of Laravel's Sanctum: its number, a bar, 40 letters and digits. */
function createOrganizations(count: number): Organization[] {
  return Array.from({ length: count }, (_, number) => {
    const name = NAMES[number] ?? `org-${number + 1}`
    const word = `sandbox${name.charAt(0).toUpperCase()}${name.slice(1).replace('-', '')}MadeUp`
    const token = `${number + 1}|${word}${createDice(hash(402, 1, number)).digits(40 - word.length)}`
    return { id: uuid(createDice(hash(401, 1, number))), name, token }
  })
}

/** Seconds. */
const NEW_ORDER_EVERY = 20
const CHANGE_EVERY = 30

/** The lists of one organization. Nothing but changes is stored: an item is computed from its index when it is asked for. */
function createLists(key: number, { orders, establishments, live, now }: SandboxOptions) {
  const began = now()
  const checks = new Map<number, number>()
  let changed = 0
  const opening = WORLD_START + orders * ORDER_EVERY

  function ordersNow(state: string | null): Listing {
    const seconds = live ? Math.max(0, Math.floor((now() - began) / 1000)) : 0
    for (; (changed + 1) * CHANGE_EVERY <= seconds; changed++) {
      const index = hash(key, 302, changed) % Math.max(1, orders)
      checks.set(index, (checks.get(index) ?? 0) + 1)
    }
    const count = orders + Math.floor(seconds / NEW_ORDER_EVERY)
    const stateAt = (index: number) => (index < orders ? orderState(key, index) : 'pending')
    return {
      indexes: indexesTo(count).filter((index) => !state || stateAt(index) === state),
      itemAt: (index) =>
        createOrder(key, index, establishments, {
          checks: checks.get(index) ?? 0,
          ...(index < orders ? {} : { createdAt: opening + (index - orders + 1) * NEW_ORDER_EVERY }),
        }),
    }
  }

  return {
    orders: ordersNow,
    establishments: (): Listing => ({
      indexes: indexesTo(establishments),
      itemAt: (index) => createEstablishment(key, index),
    }),
  }
}

function indexesTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

/** The body of a list, with the names and the order of Laravel's paginator. Links carry the filters of the request. */
function createEnvelope({ indexes, itemAt }: Listing, query: URLSearchParams, url: string, name: string) {
  const asked = Number(query.get('page'))
  const page = Number.isSafeInteger(asked) && asked > 0 ? asked : 1
  const lastPage = Math.max(1, Math.ceil(indexes.length / PAGE_SIZE))
  const link = (number: number) => {
    const carried = new URLSearchParams([...query].filter(([key]) => key !== 'page'))
    carried.set('page', String(number))
    return `${url}?${carried.toString()}`
  }
  const data = indexes.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE).map(itemAt)
  const from = data.length === 0 ? null : (page - 1) * PAGE_SIZE + 1
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
      from,
      last_page: lastPage,
      links: [],
      path: url,
      per_page: PAGE_SIZE,
      to: from === null ? null : from + data.length - 1,
      total: indexes.length,
    },
    success: true,
    message: `${name.charAt(0).toUpperCase()}${name.slice(1)} retrieved successfully.`,
  }
}

function refuse(status: number, message: string): Answer {
  return { status, headers: status === 405 ? { allow: 'GET' } : {}, body: { message } }
}

const WINDOW = 60_000

/** Laravel's limiter: for each token a window of a minute, which begins with the first request counted; a refused one is not. */
function createThrottle(limit: number) {
  const windows = new Map<string, { end: number; hits: number }>()
  return (token: string, now: number) => {
    if (limit === 0) return { isAllowed: true, headers: {} }
    const open = windows.get(token)
    const current = open && now < open.end ? open : { end: now + WINDOW, hits: 0 }
    windows.set(token, current)
    const isAllowed = current.hits < limit
    if (isAllowed) current.hits++
    const announced = {
      'X-RateLimit-Limit': String(limit),
      'X-RateLimit-Remaining': String(limit - current.hits),
    }
    return {
      isAllowed,
      headers: isAllowed
        ? announced
        : {
            ...announced,
            'Retry-After': String(Math.ceil((current.end - now) / 1000)),
            'X-RateLimit-Reset': String(Math.ceil(current.end / 1000)),
          },
    }
  }
}
