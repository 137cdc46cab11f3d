import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { createSetting, TOKEN } from './helpers/api.ts'
import { BASE_URL, createJob, ORDERS, pageText } from './helpers/job.ts'
import { foresee, watchTheWire } from './helpers/wire.ts'

watchTheWire()

const JSON_TYPE = { 'content-type': 'application/json' }

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

  it('tells how far our clock is ahead of the API, by its Date', async () => {
    foresee().reply(200, pageText(1), { ...JSON_TYPE, date: 'Fri, 20 Nov 2026 08:00:00 GMT' })
    const { open } = createSetting()
    const source = open()
    const before = source.clockAhead()

    await source.fetchPage()

    expect([before, source.clockAhead()]).toEqual([null, 30 * 60_000])
  })

  it('may be empty and beyond the last, and come with any status of success', async () => {
    const meta = { current_page: 9, last_page: 2, total: 30 }
    foresee(9).reply(299, pageText(9, 2, { data: [], links: { next: null }, meta }))
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
    ['does not know its own page', { data: [{ id: 9 }], meta: { last_page: 3, total: 30 } }],
    ['does not know the last page', { meta: { current_page: 3 } }],
  ])('that names a next one is read where it %s', async (_what, fields) => {
    const next = `${BASE_URL}${ORDERS}?page=4`
    const meta = { current_page: 3, last_page: 2, total: 30 }
    foresee(3).reply(200, pageText(3, 2, { data: [], links: { next }, meta, ...fields }))
    const { fetchPage } = createSetting()

    expect(await fetchPage(3)).toMatchObject({ number: 3, next: 4 })
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

  it('goes to baseUrl and under its prefix, wherever a link leads', async () => {
    const baseUrl = `${BASE_URL}:8443/proxied`
    const links = { next: `http://internal:9000${ORDERS}?page=2` }
    nock(`${BASE_URL}:8443`)
      .get(`/proxied${ORDERS}?page=1`)
      .reply(200, pageText(1, 2, { links }))
    nock(`${BASE_URL}:8443`).get(`/proxied${ORDERS}?page=2`).reply(200, pageText(2))
    const { fetchPage } = createSetting({ options: { baseUrl } })

    const { next } = await fetchPage(1)
    const last = await fetchPage(next ?? 0)

    expect(last.number).toBe(2)
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
    expect(clock.slept.reduce((sum, ms) => sum + ms)).toBe(4 * 11_000 + 16_000)
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
