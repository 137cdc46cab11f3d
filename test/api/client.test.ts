import { inspect } from 'node:util'
import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { JobError, KnownError, RetryableError, TokenRefusedError } from '../../src/errors.ts'
import { createSetting, TOKEN } from './helpers/api.ts'
import { BASE_URL, createJob, ORDERS, pageText } from './helpers/job.ts'
import { createHoldStore } from './helpers/stores.ts'
import { watchTheWire } from './helpers/wire.ts'

watchTheWire()

const JSON_TYPE = { 'content-type': 'application/json' }

/** The next request for this page, once. */
function foresee(page = 1, filters: Record<string, string> = {}): nock.Interceptor {
  return nock(BASE_URL)
    .get(ORDERS)
    .query({ ...filters, page: String(page) })
}

describe('a page', () => {
  it('is returned checked', async () => {
    foresee().reply(200, pageText(1, 3), {
      ...JSON_TYPE,
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '59',
    })
    const { fetchPage, reports } = createSetting()

    const page = await fetchPage()

    expect(page.items.map(({ text, value }) => [text, value])).toEqual([['{"id":1}', { id: 1 }]])
    expect(page).toMatchObject({
      number: 1,
      next: 2,
      total: 3,
      lastPage: 3,
      paginated: true,
      announcedLimit: 60,
    })
    expect(reports).toEqual(expect.arrayContaining([['request'], ['waited', 0]]))
    expect(reports).toHaveLength(2)
  })

  it('that is the last has no next', async () => {
    foresee(3).reply(200, pageText(3))
    const { fetchPage } = createSetting()

    expect(await fetchPage(3)).toMatchObject({ number: 3, next: null, announcedLimit: null })
  })

  it('may be a whole list without pages', async () => {
    foresee().reply(200, '{"data":[{"id":1}],"success":true}')
    const { fetchPage } = createSetting()

    expect(await fetchPage()).toMatchObject({ next: null, total: null, lastPage: null, paginated: false })
  })

  it('may be a whole list with its total, and announces no limit if that is 0', async () => {
    foresee().reply(200, '{"data":[{"id":1}],"meta":{"total":1}}', {
      'x-ratelimit-limit': '0',
      'x-ratelimit-remaining': '0',
    })
    const { fetchPage } = createSetting()

    expect(await fetchPage()).toMatchObject({ next: null, paginated: false, announcedLimit: null })
  })

  it('may be empty and beyond the last', async () => {
    foresee(9).reply(
      200,
      pageText(9, 2, { data: [], links: { next: null }, meta: { current_page: 9, last_page: 2, total: 30 } }),
    )
    const { fetchPage } = createSetting()

    expect(await fetchPage(9)).toMatchObject({ items: [], next: null, lastPage: 2, total: 30 })
  })

  it('that is empty, beyond the last and still names a next one ends the walk', async () => {
    const next = `${BASE_URL}${ORDERS}?page=4`
    const fields = { data: [], links: { next }, meta: { current_page: 3, last_page: 2, total: 30 } }
    foresee(3).reply(200, pageText(3, 2, fields))
    const { errorOf } = createSetting()

    const error = await errorOf(3)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({
      code: 'BAD_RESPONSE',
      message:
        'acme orders page 3: the answer has no items, names page 4 as the next one, and says that the last page is 2: ' +
        'the list does not end',
    })
  })

  it.each([
    ['has items', { data: [{ id: 9 }] }],
    ['is the last one', { meta: { current_page: 3, last_page: 3, total: 30 } }],
    ['does not know the last page', { meta: { current_page: 3 } }],
  ])('that names a next one is read where it %s', async (_what, fields) => {
    const next = `${BASE_URL}${ORDERS}?page=4`
    const meta = { current_page: 3, last_page: 2, total: 30 }
    foresee(3).reply(200, pageText(3, 2, { data: [], links: { next }, meta, ...fields }))
    const { fetchPage } = createSetting()

    expect(await fetchPage(3)).toMatchObject({ number: 3, next: 4 })
  })

  it('may come with any status of success', async () => {
    foresee().reply(299, pageText(1))
    const { fetchPage } = createSetting()

    expect(await fetchPage()).toMatchObject({ number: 1 })
  })
})

describe('every request', () => {
  it('carries both headers, accepts JSON first and alone, and names no other organization or program', async () => {
    const seen: Record<string, string>[] = []
    const { fetchPage } = createSetting()
    for (const page of [1, 2]) {
      foresee(page).reply((request: Request) => {
        seen.push(Object.fromEntries(request.headers))
        return [200, pageText(page, 2), { ...JSON_TYPE, 'set-cookie': 'session=1; Path=/' }]
      })
    }

    await fetchPage(1)
    await fetchPage(2)

    expect(seen).toHaveLength(2)
    for (const headers of seen) {
      expect(headers).toMatchObject({
        authorization: `Bearer ${TOKEN}`,
        'x-service-organization': createJob().organization.id,
        accept: 'application/json',
        'user-agent': 'admin-mirror/0.0.0',
      })
      expect(headers.cookie).toBeUndefined()
      expect(headers.referer).toBeUndefined()
    }
  })

  it('carries the organization of its own job', async () => {
    const seen: (string | null)[] = []
    const { open } = createSetting()
    for (const name of ['one', 'two']) {
      foresee().reply((request: Request) => {
        seen.push(request.headers.get('x-service-organization'))
        return [200, pageText(1)]
      })
      await open(createJob({ name })).fetchPage()
    }

    expect(seen).toEqual(['one', 'two'].map((name) => createJob({ name }).organization.id))
  })

  it('carries the filters as they are configured', async () => {
    const job = createJob({ filters: { state: 'paid', 'tag[]': ['a b', 'c+d'] } })
    let path = ''
    nock(BASE_URL)
      .get((uri) => uri.startsWith(ORDERS))
      .reply((request: Request) => {
        const { pathname, search } = new URL(request.url)
        path = pathname + search
        return [200, pageText(1)]
      })

    await createSetting({ job }).fetchPage()

    expect(path).toBe(`${ORDERS}?state=paid&tag%5B%5D=a+b&tag%5B%5D=c%2Bd&page=1`)
  })

  it('goes to baseUrl and under its prefix, wherever a link leads', async () => {
    const baseUrl = `${BASE_URL}:8443/proxied`
    const links = { next: `http://internal:9000${ORDERS}?page=2` }
    nock(`${BASE_URL}:8443`)
      .get(`/proxied${ORDERS}?page=1`)
      .reply(200, pageText(1, 2, { links }))
    nock(`${BASE_URL}:8443`).get(`/proxied${ORDERS}?page=2`).reply(200, pageText(2))
    const { fetchPage } = createSetting({ options: { baseUrl, linkHosts: ['internal'] } })

    const { next } = await fetchPage(1)
    const last = await fetchPage(next ?? 0)

    expect(last.number).toBe(2)
  })
})

describe('an answer that is refused', () => {
  const { id } = createJob().organization

  it.each<[number, string, string]>([
    [400, 'BAD_REQUEST', 'the server calls the request wrong (400) and says: no; look at the filters'],
    [
      403,
      'FORBIDDEN',
      `the token's user is no member of this organization (403) and says: no; let the user join it, or look at the token and the id ${id}`,
    ],
    [
      404,
      'ORGANIZATION_NOT_FOUND',
      `not found (404) and says: no; either the organization's id is wrong (${id}) or the address (${BASE_URL}${ORDERS})`,
    ],
    [402, 'UNEXPECTED_STATUS', 'the server answered 402 and says: no'],
    [419, 'UNEXPECTED_STATUS', 'the server answered 419 and says: no'],
    [422, 'UNEXPECTED_STATUS', 'the server answered 422 and says: no'],
    [301, 'UNEXPECTED_STATUS', 'the server redirects (301), which is never followed; look at api.baseUrl'],
    [302, 'UNEXPECTED_STATUS', 'the server redirects (302), which is never followed; look at api.baseUrl'],
    [303, 'UNEXPECTED_STATUS', 'the server redirects (303), which is never followed; look at api.baseUrl'],
    [307, 'UNEXPECTED_STATUS', 'the server redirects (307), which is never followed; look at api.baseUrl'],
    [308, 'UNEXPECTED_STATUS', 'the server redirects (308), which is never followed; look at api.baseUrl'],
    [304, 'UNEXPECTED_STATUS', 'the server redirects (304), which is never followed; look at api.baseUrl'],
  ])('with %i is not asked for again, and is %s', async (status, code, says) => {
    const location = { ...JSON_TYPE, location: `${BASE_URL}/login` }
    foresee().reply(status, status === 304 ? '' : '{"message":"no"}', location)
    const { errorOf, reports } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code, message: `acme orders page 1: ${says}` })
    expect(reports.filter(([what]) => what === 'retry')).toEqual([])
  })

  it.each([408, 500, 502, 503, 504, 520, 599])('with %i is retried, and succeeds then', async (status) => {
    foresee().reply(status, 'x')
    foresee().reply(200, pageText(1))
    const { fetchPage, reports, clock } = createSetting()

    await expect(fetchPage()).resolves.toMatchObject({ number: 1 })
    expect(reports.filter(([what]) => what === 'retry')).toEqual([
      ['retry', `acme orders page 1: the server failed (${status})`, 1000],
    ])
    expect(clock.slept).toEqual([1000])
  })

  it('with 500 each time fails after the last attempt', async () => {
    foresee().times(3).reply(500, '{"message":"Server Error"}')
    const { errorOf, clock } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({
      code: 'SERVER_ERROR',
      message: 'acme orders page 1: the server failed (500) and says: Server Error',
    })
    expect(clock.slept).toHaveLength(2)
  })

  it('with 503 is retried when the server says', async () => {
    foresee().reply(503, '', { 'retry-after': '120' })
    foresee().reply(200, pageText(1))
    const { fetchPage, clock } = createSetting()

    await fetchPage()

    expect(clock.slept).toEqual([120_000])
  })

  it('with 503 keeps other jobs waiting until the server says, too', async () => {
    foresee().reply(503, '', { 'retry-after': '120' })
    const { open, clock, budgets } = createSetting({
      options: { retry: { attempts: 1, minDelayMs: 1000, maxDelayMs: 1000 } },
    })

    const error = await open().errorOf()

    expect(error).toMatchObject({ code: 'SERVER_ERROR' })
    expect(budgets.kept('scope').closedUntil).toBe(clock.now() + 120_000)
  })

  it.each([503, 429])('with %i and a pause beyond maxWait stops all jobs until then', async (status) => {
    foresee().reply(status, '', { 'retry-after': '7200' })
    const { open, clock, budgets } = createSetting()

    const [error, later] = [await open().errorOf(), await open(createJob({ name: 'other' })).errorOf()]

    expect(error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(error.message).toMatch(/^acme orders page 1: the server asked for a pause, 2 hours long/)
    expect(later.message).toMatch(/^other orders page 1: the server asked for a pause/)
    expect(await open().refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect(budgets.kept('scope').closedUntil).toBe(clock.now() + 7_201_000)
    expect(clock.slept).toEqual([])
  })

  it('with a body that broke off is retried', async () => {
    foresee().reply(200, pageText(1).slice(0, -20))
    foresee().reply(200, pageText(1))
    const { fetchPage } = createSetting()

    expect(await fetchPage()).toMatchObject({ number: 1 })
  })

  it('with a body that breaks off each time fails after the last attempt', async () => {
    foresee().times(3).reply(200, pageText(1).slice(0, 20))
    const { errorOf } = createSetting()

    const error = await errorOf()

    expect(error).toMatchObject({
      code: 'BAD_RESPONSE',
      message: 'acme orders page 1: the answer breaks off after 20 bytes',
    })
  })

  it.each<[string, number, string, string]>([
    ['an empty body', 200, '', 'the answer is empty'],
    ['no content', 204, '', 'the answer is empty'],
    [
      'a page to log in',
      200,
      '<!doctype html><title>Log in</title>',
      'the answer is a page of HTML, not JSON (its title: Log in)',
    ],
    [
      'an error with status 200',
      200,
      '{"success":false,"message":"closed"}',
      'the answer says "success": false (message: closed)',
    ],
    ['another page', 200, pageText(1), 'asked for page 2, and page 1 was answered'],
    [
      'a list without pages',
      200,
      '{"data":[]}',
      'asked for page 2, and a list without pages was answered: the API no longer pages this list; run backfill --restart or wait for resumeWithin',
    ],
  ])('because it is %s is not asked for again, and is BAD_RESPONSE', async (_case, status, body, says) => {
    foresee(2).reply(status, body)
    const { errorOf } = createSetting()

    const error = await errorOf(2)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE', message: `acme orders page 2: ${says}` })
  })

  it.each<[string, object, string]>([
    [
      'to another host',
      { next: 'https://evil.example/api/v1/admin/orders?page=2' },
      'links.next leads to another host, evil.example',
    ],
    ['to the same page', { next: `${BASE_URL}${ORDERS}?page=1` }, 'links.next leads from page 1 to page 1'],
    ['nowhere', {}, 'links.next is missing, so the end of the list is unknown'],
    ['to nothing', { next: '' }, 'links.next names no page'],
  ])('because its link leads %s is LINK_REFUSED', async (_case, links, says) => {
    foresee().reply(200, pageText(1, 2, { links }))
    const { errorOf } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'LINK_REFUSED' })
    expect(error.message).toContain(`acme orders page 1: ${says}`)
  })

  it('because its link drops a filter is LINK_REFUSED', async () => {
    foresee(1, { state: 'paid' }).reply(200, pageText(1, 2))
    const { errorOf } = createSetting({ job: createJob({ filters: { state: 'paid' } }) })

    expect(await errorOf()).toMatchObject({ code: 'LINK_REFUSED' })
  })

  it('because the network failed is retried', async () => {
    foresee().replyWithError(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    foresee().reply(200, pageText(1))
    const { fetchPage, reports } = createSetting()

    await fetchPage()

    expect(reports).toContainEqual([
      'retry',
      expect.stringMatching(/^acme orders page 1: the network failed \(ECONNRESET\) at http/),
      1000,
    ])
  })

  it.each([
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'HOSTNAME_MISMATCH',
    'CERT_NOT_YET_VALID',
    'CERT_REVOKED',
    'INVALID_CA',
  ])('because its certificate is refused (%s) is not asked for again', async (code) => {
    foresee().replyWithError(Object.assign(new Error('certificate'), { code }))
    const { errorOf } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({
      code: 'NETWORK',
      message: `acme orders page 1: the server's certificate is refused (${code})`,
    })
  })
})

describe('a 429', () => {
  it('is waited out and uses up no attempt', async () => {
    foresee().times(5).reply(429, '', { 'retry-after': '10' })
    foresee().reply(200, pageText(1))
    const { fetchPage, reports, clock } = createSetting({
      options: { retry: { attempts: 1, minDelayMs: 1000, maxDelayMs: 1000 } },
    })

    await fetchPage()

    expect(reports.filter(([what]) => what === 'throttled')).toHaveLength(5)
    expect(reports.filter(([what]) => what === 'request')).toHaveLength(6)
    expect(reports.filter(([what]) => what === 'retry')).toEqual([])
    expect(clock.slept.reduce((sum, ms) => sum + ms)).toBe(4 * 11_000 + 17_000)
  })

  it('reports the reason and the length of its wait', async () => {
    foresee().reply(429, '<h1>429</h1>')
    foresee().reply(200, pageText(1))
    const { fetchPage, reports, clock } = createSetting()
    const until = clock.now() + 61_000

    await fetchPage()

    expect(reports).toContainEqual(['wait', 'the server asked for a pause', until])
    expect(reports).toContainEqual(['waited', 61_000])
  })
})

describe('a budget', () => {
  const usedUp = { ...JSON_TYPE, 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0' }

  it('is shared by all jobs of its scope, whichever response announced it', async () => {
    const { open, reports } = createSetting()
    foresee().reply(200, pageText(1), usedUp)
    await open(createJob({ name: 'acme' })).fetchPage()
    reports.length = 0
    foresee().reply(200, pageText(1))

    await open(createJob({ name: 'globex' })).fetchPage()

    expect(reports).toContainEqual(['waited', 60_250])
  })
})

describe('a 401', () => {
  it('says what to do, and no further request is sent with the token', async () => {
    foresee().reply(401, '{"message":"Unauthenticated."}')
    const { open, holdStore, reports } = createSetting()

    const error = await open().errorOf()
    const others = [await open().errorOf(2), await open(createJob({ name: 'other' })).errorOf()]

    expect(error).toBeInstanceOf(TokenRefusedError)
    expect(error.message).toBe(
      'the token of organization acme was refused (401) at orders page 1; it was revoked, or is mistyped. Nothing more is ' +
        'sent with it. Put a new token into the configuration, or run "admin-mirror resume --org acme" if it is valid again',
    )
    expect(others.every((other) => other instanceof TokenRefusedError)).toBe(true)
    expect(holdStore.heldReason()).toBe('the token of organization acme was refused (401)')
    expect(reports.filter(([what]) => what === 'request')).toHaveLength(1)
  })

  it('stops requests that wait for the rate limit, too', async () => {
    foresee().reply(401)
    const { open } = createSetting({ options: { concurrency: 1 } })

    const errors = await Promise.all([1, 2, 3].map((page) => open().errorOf(page)))

    expect(errors.map(({ name }) => name)).toEqual(Array.from({ length: 3 }, () => 'TokenRefusedError'))
  })

  it('ends the attempts of a page that failed before', async () => {
    foresee().reply(500)
    foresee().reply(401)
    const { errorOf } = createSetting()

    expect(await errorOf()).toBeInstanceOf(TokenRefusedError)
  })
})

describe('a token that is held', () => {
  it.each([200, 299, 403])('is released by a %i', async (status) => {
    foresee().reply(status, pageText(1))
    const { fetchPage, holdStore } = createSetting({ holdStore: createHoldStore('401') })

    await fetchPage().catch(() => {})

    expect(holdStore.heldReason()).toBeNull()
  })

  it.each([400, 404, 422, 301])('stays held after a %i', async (status) => {
    foresee().reply(status)
    const { errorOf, holdStore } = createSetting({ holdStore: createHoldStore('401') })

    await errorOf()

    expect(holdStore.heldReason()).toBe('401')
  })

  it.each([
    [500, 'SERVER_ERROR'],
    [429, 'RATE_LIMITED'],
    [404, 'ORGANIZATION_NOT_FOUND'],
  ])('is tried by one request, and not again after a %i, which proves nothing', async (status, code) => {
    foresee().reply(status)
    const { open, holdStore, clock } = createSetting({ holdStore: createHoldStore('401') })

    const errors = await Promise.all(['one', 'two'].map((name) => open(createJob({ name })).errorOf()))

    expect(errors).toMatchObject([{ name: 'JobError', code }, { name: 'TokenRefusedError' }])
    expect(holdStore.heldReason()).toBe('401')
    expect(clock.slept).toEqual([])
  })

  it('is tried by the next request if the first was stopped before it was sent', async () => {
    foresee().reply(200, pageText(1))
    const { open, budgets, clock, holdStore } = createSetting({ holdStore: createHoldStore('401') })
    budgets.change('scope', { closedUntil: clock.now() + 3_600_000 })
    expect(await open().errorOf()).toMatchObject({ code: 'RATE_LIMITED' })

    budgets.change('scope', { closedUntil: 0 })
    await open().fetchPage()

    expect(holdStore.heldReason()).toBeNull()
  })

  it('is tried by one request only, if that gets another 401', async () => {
    foresee().reply(401)
    const { open, holdStore } = createSetting({ holdStore: createHoldStore('401') })

    const errors = await Promise.all(
      ['one', 'two', 'three'].map((name) => open(createJob({ name })).errorOf()),
    )

    expect(errors.map(({ name }) => name)).toEqual(Array.from({ length: 3 }, () => 'TokenRefusedError'))
    expect(holdStore.heldReason()).toBe('the token of organization one was refused (401)')
  })

  it('is used by all once the trial was served', async () => {
    foresee().times(3).reply(200, pageText(1))
    const { open } = createSetting({ holdStore: createHoldStore('401') })

    const pages = await Promise.all(
      ['one', 'two', 'three'].map((name) => open(createJob({ name })).fetchPage()),
    )

    expect(pages).toHaveLength(3)
  })
})

describe('the message of a server', () => {
  it('is cut and cleaned of control characters', async () => {
    foresee().reply(422, JSON.stringify({ message: `\u001b[31mred\u0007\u202e${'x'.repeat(5000)}` }))
    const { errorOf } = createSetting()

    const { message } = await errorOf()

    expect(message).toMatch(/says: \\u\{1b\}\[31mred\\u\{7\}\\u\{202e\}x+\.\.\.$/)
    expect(message.length).toBeLessThan(400)
  })

  it.each([
    ['a debug page', '<h1>SQLSTATE: select * from users</h1>'],
    ['a trace', '{"exception":"x","trace":["password"]}'],
    ['a message that is no text', '{"message":{"a":1}}'],
    ['nothing', ''],
    ['null', 'null'],
    ['too much', `{"message":"${'x'.repeat(100_001)}"}`],
  ])('is left out when it is %s', async (_case, body) => {
    foresee().reply(422, body)
    const { errorOf } = createSetting()

    expect((await errorOf()).message).toBe('acme orders page 1: the server answered 422')
  })
})

/** A message that is cut after so many characters of the token. */
function cutAfter(length: number): string {
  return 'x'.repeat(200 - length) + TOKEN
}

describe('the token', () => {
  it.each<[string, number, string]>([
    ['in the message of an error', 422, JSON.stringify({ message: `no user for ${TOKEN}` })],
    ['in the message of an error that is retried', 500, JSON.stringify({ message: `no user for ${TOKEN}` })],
    ['in a message that is cut within it', 422, JSON.stringify({ message: cutAfter(15) })],
    [
      'in a message that is cut just before its end',
      422,
      JSON.stringify({ message: cutAfter(TOKEN.length - 1) }),
    ],
    ['in a message that is cut soon after its beginning', 422, JSON.stringify({ message: cutAfter(7) })],
    ['in a body that is no JSON', 200, `Bearer ${TOKEN}`],
    ['in a body that is no JSON, cut', 200, `${'x'.repeat(70)}${TOKEN}`],
    [
      'in a body that is broken JSON, with escapes',
      200,
      JSON.stringify([TOKEN]).replaceAll('/', '\\/') + ',',
    ],
    ['in the title of a page', 200, `<title>${TOKEN}</title>`],
    ['in a message beside no data', 200, JSON.stringify({ message: TOKEN })],
    ['in a name of a field', 200, JSON.stringify({ data: { [TOKEN]: 1 } })],
    [
      'in a path, encoded in small letters',
      200,
      pageText(1, 2, {
        links: { next: `https://evil.example/${encodeURIComponent(TOKEN).toLowerCase()}?page=2` },
      }),
    ],
    ['in a path', 200, pageText(1, 2, { links: { next: `https://evil.example/${TOKEN}` } })],
    ['in a link that is none', 200, pageText(1, 2, { links: { next: `http://[${TOKEN}` } })],
  ])('is redacted if the server echoes it %s', async (_case, status, body) => {
    foresee()
      .times(status === 500 ? 3 : 1)
      .reply(status, body)
    const { errorOf, reports } = createSetting()

    const error = await errorOf()

    expectNoToken(error)
    expectNoToken(reports)
    expect(error.message).toContain('[token]')
  })

  it.each([TOKEN, encodeURIComponent(TOKEN), encodeURIComponent(TOKEN).toLowerCase()])(
    'is not shown, nor any other value, if the query of a link echoes it: %s',
    async (echo) => {
      foresee().reply(
        200,
        pageText(1, 2, { links: { next: `https://evil.example/?api_token=${echo}&page=2` } }),
      )
      const { errorOf, reports } = createSetting()

      const error = await errorOf()

      expectNoToken(error)
      expectNoToken(reports)
      expect(error).toMatchObject({ code: 'LINK_REFUSED' })
      expect(error.message).toContain('(https://evil.example/?api_token&page=2)')
    },
  )

  it.each<[string, (interceptor: nock.Interceptor) => void]>([
    ['a refused status', (interceptor) => interceptor.reply(403, '{"message":"no"}')],
    ['a refused token', (interceptor) => interceptor.reply(401)],
    ['a failure of the server', (interceptor) => interceptor.times(3).reply(500)],
    [
      'a broken network',
      (interceptor) =>
        interceptor.times(3).replyWithError(Object.assign(new Error(TOKEN), { code: 'EPIPE' })),
    ],
    [
      'a refused certificate',
      (interceptor) =>
        interceptor.replyWithError(Object.assign(new Error(TOKEN), { code: 'CERT_HAS_EXPIRED' })),
    ],
    ['an answer that is too large', (interceptor) => interceptor.reply(200, 'x'.repeat(1_000_001))],
    ['an answer that is no list', (interceptor) => interceptor.reply(200, 'x')],
  ])('is nowhere in the error of %s, however deep one looks', async (_case, answer) => {
    answer(foresee())
    const { errorOf } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(KnownError)
    expect(error.cause).toBeUndefined()
    expectNoToken(error)
  })
})

/** Not even a piece of it. */
function expectNoToken(value: unknown): void {
  const text = inspect(value, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null })
  const pieces = Array.from({ length: TOKEN.length - 7 }, (_, start) => TOKEN.slice(start, start + 8))

  expect(pieces.filter((piece) => text.includes(piece))).toEqual([])
}
