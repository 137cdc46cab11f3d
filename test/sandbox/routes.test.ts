import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/server.ts'
import {
  ESTABLISHMENTS,
  get,
  type Headers,
  headersOf,
  idsOf,
  ORDERS,
  read,
  start,
  UNKNOWN_ID,
  walk,
} from './client.ts'

describe('a list', () => {
  it('is walked by following links.next, each item once and in order', async () => {
    const pages = await walk(await start(), ORDERS)

    const ids = idsOf(pages)
    expect(pages.map(({ data }) => data.length)).toEqual([25, 25, 10])
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
  })

  it.each([
    [
      ESTABLISHMENTS,
      { links: { next: null }, meta: { total: 3 }, message: 'Establishments retrieved successfully.' },
    ],
    [
      `${ORDERS}?page=9`,
      { data: [], links: { next: null }, meta: { current_page: 9, from: null, total: 60 } },
    ],
    [`${ORDERS}?page=abc`, { meta: { current_page: 1 }, message: 'Orders retrieved successfully.' }],
    [`${ORDERS}?state=unheard`, { data: [], meta: { from: null, to: null, last_page: 1, total: 0 } }],
    [`${ORDERS}/?colour=red`, { meta: { total: 60, last_page: 3 } }],
  ])('asked for as %s', async (target, body) => {
    expect(await read(await start(), target)).toMatchObject(body)
  })

  it('carries its filters through all pages', async () => {
    const sandbox = await start({ orders: 500 })

    const pages = await walk(sandbox, `${ORDERS}?state[]=paid&colour=r%C3%B6t&empty=`)

    const items = pages.flatMap(({ data }) => data)
    expect(pages.length).toBeGreaterThan(1)
    expect(pages[0]?.links.next).toBe(`${sandbox.url}${ORDERS}?state%5B0%5D=paid&colour=r%C3%B6t&page=2`)
    expect(items).toHaveLength(pages[0]?.meta.total ?? 0)
    expect(new Set(items.map(({ state }) => state))).toEqual(new Set(['paid']))
  })

  it('starts at created_from', async () => {
    const sandbox = await start()
    const [, second] = await walk(sandbox, ORDERS)

    const body = await read(sandbox, `${ORDERS}?created_from=${second?.data[0]?.created_at}`)

    expect(body.data[0]).toEqual(second?.data[0])
    expect(body.meta.total).toBe(35)
  })
})

/** The headers of a user, but for these. */
function sending(changed: Headers) {
  return (sandbox: Sandbox) => ({ ...headersOf(sandbox), ...changed })
}

const REFUSED: [number, string, string, boolean, (sandbox: Sandbox) => Headers][] = [
  [404, 'an unknown path', '/elsewhere', false, headersOf],
  [401, 'no token', ORDERS, false, sending({ authorization: '' })],
  [401, 'a wrong token', ORDERS, false, sending({ authorization: 'Bearer 1|wrong' })],
  [401, 'neither header', ORDERS, false, () => ({ accept: 'application/json' })],
  [400, 'no organization', ORDERS, true, sending({ 'x-service-organization': '' })],
  [404, 'an unknown UUID', ORDERS, true, sending({ 'x-service-organization': UNKNOWN_ID })],
  [404, 'no UUID', ORDERS, true, sending({ 'x-service-organization': 'acme' })],
  [403, "another's organization", ORDERS, true, (sandbox) => headersOf(sandbox, 0, 1)],
  [422, 'a date that is none', `${ORDERS}?created_from=soon`, true, headersOf],
]

describe('a refusal', () => {
  it.each(REFUSED)('is %i for %s, with a message', async (status, _, target, counted, headers) => {
    const sandbox = await start({ requestsPerMinute: 1 })

    const refused = await get(sandbox, target, headers(sandbox))
    const next = await get(sandbox, ORDERS)

    expect(refused.status).toBe(status)
    expect(await refused.json()).toMatchObject({ message: expect.stringMatching(/\w/) })
    expect(refused.headers.has('x-ratelimit-limit')).toBe(counted)
    expect(next.status).toBe(counted ? 429 : 200)
  })

  it('of another method is 405, says what is allowed, and is not counted', async () => {
    const sandbox = await start({ requestsPerMinute: 1 })

    const response = await fetch(sandbox.url + ORDERS, {
      method: 'POST',
      headers: headersOf(sandbox),
      body: '{}',
    })
    const next = await get(sandbox, ORDERS)

    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET')
    expect(next.status).toBe(200)
  })

  it.each([
    ['application/json', 'application/json'],
    ['application/vnd.api+json, text/html', 'application/json'],
    ['text/html, application/json', 'text/html; charset=UTF-8'],
    ['*/*', 'text/html; charset=UTF-8'],
  ])('of a request that accepts %s is %s', async (accept, type) => {
    const response = await get(await start(), ORDERS, { accept })

    expect(response.headers.get('content-type')).toBe(type)
  })
})

describe('the limit', () => {
  it('is announced on counted answers, and a refusal says how long to wait', async () => {
    const sandbox = await start({ requestsPerMinute: 2 })

    const answers = [await get(sandbox, ORDERS), await get(sandbox, ORDERS), await get(sandbox, ORDERS)]

    const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'retry-after', 'x-ratelimit-reset']
    expect(answers.map(({ status, headers }) => [status, ...names.map((name) => headers.get(name))])).toEqual(
      [
        [200, '2', '1', null, null],
        [200, '2', '0', null, null],
        [429, '2', '0', '60', '1060'],
      ],
    )
    expect(await answers[2]?.json()).toEqual({ message: 'Too Many Attempts.' })
  })

  it('is one for all lists of a user, and another for each user', async () => {
    const sandbox = await start({ requestsPerMinute: 1 })
    await get(sandbox, ORDERS)

    const same = await get(sandbox, ESTABLISHMENTS)
    const other = await get(sandbox, ORDERS, headersOf(sandbox, 1))

    expect([same.status, other.status]).toEqual([429, 200])
  })
})
