import { describe, expect, it } from 'vitest'
import { createApi, type SandboxOptions } from '../../src/sandbox/api.ts'

const ORDERS = '/api/v1/admin/orders'

interface List {
  data: { id: number; state: string }[]
  links: { next: string | null }
  meta: Record<string, unknown>
}

function open(options: Partial<SandboxOptions> = {}) {
  let time = 1_000_000
  const { organizations, answer } = createApi({
    orders: 60,
    establishments: 3,
    organizations: 2,
    requestsPerMinute: 0,
    live: false,
    now: () => time,
    ...options,
  })
  const headersOf = (index: number) => ({
    authorization: `Bearer ${organizations[index]?.token}`,
    'x-service-organization': organizations[index]?.id,
  })
  const get = (target: string, changed: object = {}) =>
    answer({ url: target, headers: { host: 'api.test', ...headersOf(0), ...changed } })
  const walk = (target: string, changed: object = {}) => {
    const pages: List[] = []
    for (let next: string | null = target; next !== null; next = pages.at(-1)?.links.next ?? null)
      pages.push(get(next.replace('http://api.test', ''), changed).body as List)
    return pages
  }
  const pass = (ms: number) => {
    time += ms
  }
  return { organizations, other: headersOf(1), get, walk, pass }
}

describe('a list of the sandbox', () => {
  it('is walked by links.next, each item once and in order; filtered, the same in each sandbox, another for each organization', () => {
    const { walk, other } = open()

    const pages = walk(ORDERS)

    const ids = pages.flatMap(({ data }) => data.map(({ id }) => id))
    expect(pages.map(({ data }) => data.length)).toEqual([25, 25, 10])
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
    expect(pages[1]).toMatchObject({
      meta: { current_page: 2, from: 26, to: 50, last_page: 3, per_page: 25, total: 60 },
      success: true,
      message: 'Orders retrieved successfully.',
    })
    expect(open().walk(ORDERS)).toEqual(pages)
    expect(walk(ORDERS, other)[0]?.data).not.toEqual(pages[0]?.data)
    const paid = open({ orders: 500 })
      .walk(`${ORDERS}?state=paid`)
      .flatMap(({ data }) => data.map(({ state }) => state))
    expect([...new Set(paid)]).toEqual(['paid'])
  })

  it('that is live gains an order every 20 seconds', () => {
    const { walk, pass } = open({ live: true })
    const orders = () => walk(ORDERS).flatMap(({ data }) => data)
    const before = orders()

    pass(61_000)

    const after = orders()
    expect(after.slice(0, 60)).toEqual(before)
    expect(after).toHaveLength(63)
  })
})

it.each<[number, string, object]>([
  [404, '/elsewhere', {}],
  [401, ORDERS, { authorization: 'Bearer 1|wrong' }],
  [400, ORDERS, { 'x-service-organization': undefined }],
  [404, ORDERS, { 'x-service-organization': '00000000-0000-4000-8000-000000000000' }],
  [403, ORDERS, { 'x-service-organization': open().other['x-service-organization'] }],
])('the sandbox refuses with %i: %s with %j', (status, target, changed) => {
  const answer = open().get(target, changed)

  expect(answer).toMatchObject({ status, body: { message: expect.stringMatching(/\w/) } })
})

it('the sandbox refuses too many requests of one token, and says how long to wait, until its minute is over', () => {
  const { get, other, pass } = open({ requestsPerMinute: 1 })

  expect(get(ORDERS).headers).toEqual({ 'X-RateLimit-Limit': '1', 'X-RateLimit-Remaining': '0' })
  expect(get(ORDERS)).toMatchObject({
    status: 429,
    headers: { 'X-RateLimit-Remaining': '0', 'Retry-After': '60', 'X-RateLimit-Reset': '1060' },
  })
  expect(get(ORDERS, other).status).toBe(200)
  pass(60_000)
  expect(get(ORDERS).status).toBe(200)
})
