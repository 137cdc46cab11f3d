import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLinkReader, type LinkRules, type LinkVerdict, pageAddress } from '../../src/api/links.ts'
import type { Filters } from '../../src/sync/types.ts'

const BASE = 'https://admin.example.com'
const PATH = '/api/v1/admin/orders'
const LIST = `${BASE}${PATH}`

type Setting = Partial<LinkRules> & { currentPage?: number }

function read(link: string, { currentPage = 1, ...changed }: Setting = {}): LinkVerdict {
  const rules = { baseUrl: BASE, path: PATH, filters: {}, linkHosts: [], ...changed }
  return createLinkReader(rules)(link, currentPage)
}

function refusalOf(link: string, changed: Setting = {}): string {
  const verdict = read(link, changed)
  return 'refused' in verdict ? verdict.refused : `accepted page ${verdict.page}`
}

describe('a link that is followed', () => {
  it.each<[string, string, Setting]>([
    ['the plain link', `${LIST}?page=2`, {}],
    ['another scheme', `http://admin.example.com${PATH}?page=2`, {}],
    ['a host in capitals', `https://ADMIN.Example.COM${PATH}?page=2`, {}],
    ['a host of linkHosts on a port', `http://internal:9000${PATH}?page=2`, { linkHosts: ['internal'] }],
    ['the prefix of baseUrl', `${BASE}/proxied${PATH}?page=2`, { baseUrl: `${BASE}/proxied` }],
    ['a path without that prefix', `${LIST}?page=2`, { baseUrl: `${BASE}/proxied` }],
    ['a relative link that is a query', '?page=2', {}],
    ['a relative link under a prefix', 'orders?page=2', { baseUrl: `${BASE}/proxied` }],
    ['further parameters', `${LIST}?sort=id&page=2&per_page=25`, {}],
    ['user information', `https://user:word@admin.example.com${PATH}?page=2`, {}],
    ['a fragment', `${LIST}?page=2#page=9`, {}],
    ['the page in encoded letters', `${LIST}?%70age=%32`, {}],
    ['a path beyond ASCII', `${BASE}/api/v1/admin/caf%C3%A9s?page=2`, { path: '/api/v1/admin/cafés' }],
  ])('may have %s', (_case, link, changed) => {
    const { currentPage = 1 } = changed

    expect(read(link, changed)).toEqual({ page: currentPage + 1 })
  })

  it.each<[string, Filters, string]>([
    ['with a list counted in another order', { 'state[]': ['a', 'b'] }, 'state[1]=b&state[0]=a&page=2'],
    ['with a list counted beyond nine', { 'state[]': 'a' }, 'state[10]=a&page=2'],
    ['with a list not counted in another order', { 'state[]': ['a', 'b'] }, 'state[]=b&page=2&state[]=a'],
    ['with a name given twice in another order', { state: ['a', 'b'] }, 'state=b&state=a&page=2'],
    ['with one that is empty and lost its sign', { q: '' }, 'q&page=2'],
    ['without the empty values of a list', { 'q[]': ['a', ''] }, 'q[0]=a&page=2'],
    ['without a list of empty ones', { 'q[]': ['', ''] }, 'page=2'],
  ])('may carry the filters %s', (_case, filters, query) => {
    expect(read(`${LIST}?${query}`, { filters })).toEqual({ page: 2 })
  })

  it('may write any filters in any order and encoding', () => {
    const text = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 6 })
      .filter((one) => one.isWellFormed())
    const name = text.filter((one) => !one.includes('[') && one !== 'page')
    const written = fc
      .uniqueArray(fc.tuple(name, text), { selector: ([one]) => one, maxLength: 6 })
      .chain((pairs) =>
        fc.record({
          pairs: fc.constant(pairs),
          shuffled: fc.shuffledSubarray(pairs, { minLength: pairs.length }),
          encoder: fc.constantFrom(encodeURIComponent, everyByteEncoded),
        }),
      )

    fc.assert(
      fc.property(written, ({ pairs, shuffled, encoder }) => {
        const query = shuffled.map(([key, value]) => `${encoder(key)}=${encoder(value)}&`).join('')
        const filters = Object.fromEntries(pairs)

        expect(read(`${LIST}?${query}page=2`, { filters })).toEqual({ page: 2 })
      }),
    )
  })
})

function everyByteEncoded(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

function addressOf(filters: Filters, page: number): string {
  return pageAddress({ baseUrl: BASE, path: PATH, filters }, page).href
}

describe('the address of a request', () => {
  it('holds a list as often as it has values', () => {
    expect(addressOf({ 'state[]': ['a', 'b'] }, 1)).toBe(`${LIST}?state%5B%5D=a&state%5B%5D=b&page=1`)
  })

  it('makes a link that is followed', () => {
    const values = fc.oneof(fc.string(), fc.array(fc.string(), { minLength: 1, maxLength: 3 }))
    const filters = fc.dictionary(
      fc.string().filter((name) => name !== 'page'),
      values,
      { maxKeys: 5 },
    )

    fc.assert(
      fc.property(filters, fc.integer({ min: 1, max: 1e9 }), (sent, page) => {
        const link = addressOf(sent, page + 1)

        expect(read(link, { filters: sent, currentPage: page })).toEqual({ page: page + 1 })
      }),
    )
  })
})

describe('a link that is refused', () => {
  it.each<[string, string, Setting, string]>([
    ['another host', `https://evil.example${PATH}?page=2`, {}, 'leads to another host, evil.example'],
    [
      'our host first',
      `https://admin.example.com@evil.example${PATH}?page=2`,
      {},
      'another host, evil.example',
    ],
    ['a part of a linkHost', `http://x.internal${PATH}?page=2`, { linkHosts: ['internal'] }, 'another host'],
    [
      'a path',
      `${BASE}/api/v1/admin/establishments?page=2`,
      {},
      'another path, /api/v1/admin/establishments',
    ],
    ['a path that climbs', `${LIST}/../establishments?page=2`, {}, 'leads to another path'],
    ['two pages', `${LIST}?page=2&page=3`, {}, 'names two pages'],
    ['no page', `${LIST}?sort=id`, {}, 'names no page'],
    ['the same page', `${LIST}?page=1`, {}, 'leads from page 1 to page 1'],
    ['the page before', `${LIST}?page=4`, { currentPage: 5 }, 'leads from page 5 to page 4'],
    ['a page too large', `${LIST}?page=9007199254740993`, { currentPage: 9007199254740991 }, 'leads from'],
    ['page 02', `${LIST}?page=02`, {}, 'names no page'],
    ['a broken address', 'http://[', {}, 'is not an http or https address'],
    ['a file', `file://${PATH}?page=2`, {}, 'is not an http or https address'],
  ])('has %s', (_case, link, changed, reason) => {
    const message = refusalOf(link, changed)

    expect(message).toContain(reason)
    expect(message).toMatch(/^links\.next /)
  })

  it.each<[string, Filters, string, string]>([
    ['a dropped filter', { state: 'paid' }, 'page=2', 'drops the filter state'],
    ['a changed filter', { state: 'paid' }, 'state=open&page=2', 'changes the filter state ('],
    [
      'values that changed',
      { 'f[0][a]': 'x', 'f[1][a]': 'y' },
      'f[0][a]=y&f[1][a]=x&page=2',
      'changes the filter f[0][a]',
    ],
    ['a plus that became a space', { q: 'a+b' }, 'q=a+b&page=2', 'changes the filter q ('],
  ])('has %s', (_case, filters, query, reason) => {
    expect(refusalOf(`${LIST}?${query}`, { filters })).toContain(reason)
  })

  it('says which host it was and where to allow it', () => {
    const message = refusalOf(`http://internal:8080${PATH}?page=2`)

    expect(message).toContain('another host, internal; if it is the same service, add it to api.linkHosts')
    expect(message).toContain(`http://internal:8080${PATH}?page=2`)
  })

  it.each<[string, string, Filters]>([
    ['the link', `https://evil.example/\u001b[31m\u0007\u202e?page=2`, {}],
    ['a filter', `${LIST}?state=%1b%5b31m%07%e2%80%ae%0a&page=2`, { state: 'paid' }],
    ['a broken link', `http://[\u001b\u0000`, {}],
  ])('is shown without the control characters of %s', (_case, link, filters) => {
    expect(refusalOf(link, { filters })).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  })

  it.each<[string, string, Filters]>([
    ['a host', `https://${'x.'.repeat(5_000)}example?page=2`, {}],
    ['a filter', `${LIST}?state=${'x'.repeat(4000)}&page=2`, { state: 'paid' }],
  ])('is shown in less than 700 characters, however long %s is', (_case, link, filters) => {
    expect(refusalOf(link, { filters }).length).toBeLessThan(700)
  })

  it.each([
    `https://user:secret-word@evil.example${PATH}?page=2`,
    `https:\\\\user:secret-word@evil.example${PATH}?page=2`,
    `https://user:secret-word@half@evil.example${PATH}?page=2`,
  ])('is shown without the user information of %s', (link) => {
    const message = refusalOf(link)

    expect(message).toContain('another host, evil.example')
    expect(message).not.toContain('secret-word')
  })

  it.each<[string, string, Filters, string]>([
    ['in capitals', `HTTPS://Evil.Example${PATH}?page=2`, {}, `(https://evil.example${PATH}?page=2)`],
    ['with a query in its fragment', `${BASE}/other#a?secret-word`, {}, `(${BASE}/other)`],
    [
      'to another host',
      `https://evil.example${PATH}?api_token=secret-word&page=2#secret-word`,
      {},
      `(https://evil.example${PATH}?api_token&page=2)`,
    ],
    [
      'with a changed filter',
      `${LIST}?state=secret-word&page=2`,
      { state: 'paid' },
      `changes the filter state (${LIST}?state&page=2)`,
    ],
    [
      'broken',
      'http://user:secret-word@[/orders?q=secret-word&page=2',
      {},
      'is not an http or https address',
    ],
    ['without values', `${LIST}?secret`, {}, `names no page (${LIST}?secret)`],
  ])('is shown with the names of its query and its page alone: one %s', (_case, link, filters, shown) => {
    const message = refusalOf(link, { filters })

    expect(message).toContain(shown)
    expect(message).not.toContain('secret-word')
  })

  it('is refused and never crashes, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.webPath()), (link) => {
        expect(refusalOf(link)).toMatch(/^links\.next /)
      }),
    )
  })
})
