import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { pageCount, pagesMadeBefore, pagesOnDemand } from './pages.ts'

const LIST = { orders: 60, url: 'http://127.0.0.1:1/api/v1/admin/orders' }

interface Envelope {
  data: Record<string, unknown>[]
  links: { next: string | null }
  meta: { total: number; last_page: number; to: number }
}

const KINDS = {
  'made before': pagesMadeBefore({ ...LIST, gzip: false }),
  'made before and packed': pagesMadeBefore({ ...LIST, gzip: true }),
  'made on demand': pagesOnDemand(LIST),
}

describe.each(Object.entries(KINDS))('a list %s', (name, pageAt) => {
  const read = (page: number) => {
    const body = pageAt(page)
    if (body === undefined) return null
    return JSON.parse((name.includes('packed') ? gunzipSync(body) : body).toString()) as Envelope
  }

  it('is walked by its links, and holds each order once', () => {
    const pages = [1, 2, 3].map((page) => read(page))

    expect(pages.map((page) => page?.links.next)).toEqual([`${LIST.url}?page=2`, `${LIST.url}?page=3`, null])
    expect(pages.map((page) => page?.data.length)).toEqual([25, 25, 10])
    expect(new Set(pages.flatMap((page) => page?.data.map(({ id }) => id))).size).toBe(60)
    expect(pages.at(-1)?.meta).toMatchObject({ total: 60, last_page: 3, to: 60 })
  })

  it('has orders as the sandbox makes them', () => {
    const [order = {}] = read(2)?.data ?? []

    expect(Object.keys(order).toSorted()).toEqual(Object.keys(SANDBOX_ORDER).toSorted())
    expect(order).toMatchObject({ items: expect.any(Array), created_at: expect.stringMatching(/^20\d\d-/) })
  })

  it('has nothing beyond its end', () => {
    expect([read(0), read(pageCount(LIST.orders) + 1)]).toEqual([null, null])
  })
})

const [SANDBOX_ORDER = {}] = (
  JSON.parse(KINDS['made before'](1)?.toString() ?? '') as { data: Record<string, unknown>[] }
).data
