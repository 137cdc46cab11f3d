import {
  createDice,
  createEstablishment,
  createOrder,
  hash,
  ORDER_EVERY,
  orderState,
  uuid,
  WORLD_START,
} from './items.ts'

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

/** With `live`. Seconds. */
const NEW_ORDER_EVERY = 20

/** The made-up API: its organizations, and what it answers. The checks have Laravel's order: path, method, token, limit, organization. */
export function createApi(options: SandboxOptions) {
  const { orders, establishments, live, now } = options
  const began = now()
  const organizations = createOrganizations(options.organizations)
  const throttle = createThrottle(options.requestsPerMinute)

  /** The indexes of the items of a list at this moment, and each of them: it is computed when it is asked for. */
  function listing(name: string, key: number, state: string | null) {
    if (name === 'establishments')
      return {
        indexes: indexesTo(establishments),
        itemAt: (index: number) => createEstablishment(key, index),
      }
    const come = live ? Math.max(0, Math.floor((now() - began) / 1000 / NEW_ORDER_EVERY)) : 0
    const opening = WORLD_START + orders * ORDER_EVERY
    const isNew = (index: number) => index >= orders
    const stateAt = (index: number) => (isNew(index) ? 'pending' : orderState(key, index))
    return {
      indexes: indexesTo(orders + come).filter((index) => !state || stateAt(index) === state),
      itemAt: (index: number) => {
        const createdAt = isNew(index) ? opening + (index - orders + 1) * NEW_ORDER_EVERY : null
        return createOrder(key, index, establishments, createdAt)
      },
    }
  }

  function answer({ method, target, headers }: Request): Answer {
    const of = (name: string) => [headers[name]].flat()[0] ?? ''
    const { pathname, searchParams } = new URL(target, `http://${of('host') || 'localhost'}`)
    const name = /^\/api\/v1\/admin\/(orders|establishments)\/?$/.exec(pathname)?.[1]
    if (name === undefined) return refuse(404, `The route ${pathname.slice(1)} could not be found.`)
    if (method !== 'GET')
      return refuse(405, `The ${method} method is not supported for this route.`, { allow: 'GET' })
    const user = organizations.findIndex(({ token }) => of('authorization') === `Bearer ${token}`)
    if (user === -1) return refuse(401, 'Unauthenticated.')
    const { isAllowed, headers: limits } = throttle(user, now())
    if (!isAllowed) return refuse(429, 'Too Many Attempts.', limits)
    const asked = of('x-service-organization').toLowerCase()
    if (asked === '') return refuse(400, 'The X-SERVICE-ORGANIZATION header is required.', limits)
    const organization = organizations.findIndex(({ id }) => id === asked)
    if (organization === -1) return refuse(404, 'Organization not found.', limits)
    if (organization !== user) return refuse(403, 'You are not a member of this organization.', limits)
    const { indexes, itemAt } = listing(name, hash(301, 1, user), searchParams.get('state'))
    const url = `http://${of('host') || 'localhost'}${pathname.replace(/\/$/, '')}`
    return { status: 200, headers: limits, body: envelope(indexes, itemAt, searchParams, url, name) }
  }

  return { organizations, answer }
}

const NAMES = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'soylent', 'tyrell', 'wonka']

/** Each with a token in the form of Laravel's Sanctum: its number, a bar, 40 letters and digits. */
function createOrganizations(count: number): Organization[] {
  return indexesTo(count).map((number) => {
    const name = NAMES[number] ?? `org-${number + 1}`
    const word = `sandbox${name.charAt(0).toUpperCase()}${name.slice(1).replace('-', '')}MadeUp`
    const token = `${number + 1}|${word}${createDice(hash(402, 1, number)).digits(40 - word.length)}`
    return { id: uuid(createDice(hash(401, 1, number))), name, token }
  })
}

function indexesTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

/** The body of a list, with the names and the order of Laravel's paginator. Links carry the filters of the request. */
function envelope(
  indexes: readonly number[],
  itemAt: (index: number) => object,
  query: URLSearchParams,
  url: string,
  name: string,
): object {
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

function refuse(status: number, message: string, headers: Record<string, string> = {}): Answer {
  return { status, headers, body: { message } }
}

const WINDOW = 60_000

/** Laravel's limiter: for each user a window of a minute, which begins with the first request counted; a refused one is not. */
function createThrottle(limit: number) {
  const windows = new Map<number, { end: number; hits: number }>()
  return (user: number, now: number): { isAllowed: boolean; headers: Record<string, string> } => {
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
