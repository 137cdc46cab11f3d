import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAddresses } from '../../src/api/links.ts'
import type { Filters } from '../../src/sync/types.ts'
import { BASE, LIST, PATH, read, type Setting } from './helpers/links.ts'

describe('a link that is followed', () => {
  it.each<[string, string, Setting]>([
    ['the plain link', `${LIST}?page=2`, {}],
    ['another scheme', `http://admin.example.com${PATH}?page=2`, {}],
    ['another port', `https://admin.example.com:8443${PATH}?page=2`, {}],
    ['a host in capitals', `https://ADMIN.Example.COM${PATH}?page=2`, {}],
    ['a host of linkHosts on a port', `http://internal:9000${PATH}?page=2`, { linkHosts: ['internal'] }],
    ['the prefix of baseUrl', `${BASE}/proxied${PATH}?page=2`, { baseUrl: `${BASE}/proxied` }],
    ['a slash behind the path', `${LIST}/?page=2`, {}],
    ['a path without that prefix', `${LIST}?page=2`, { baseUrl: `${BASE}/proxied` }],
    ['a relative link that is a query', '?page=2', {}],
    ['a relative link that is a path', `${PATH}?page=2`, {}],
    ['a relative link under a prefix', 'orders?page=2', { baseUrl: `${BASE}/proxied` }],
    ['a link without a scheme', `//admin.example.com${PATH}?page=2`, {}],
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
    ['in another order', { state: 'paid', from: '2026-01-01' }, 'page=2&from=2026-01-01&state=paid'],
    ['with a space as %20', { q: 'a b' }, 'q=a%20b&page=2'],
    ['with brackets encoded', { 'filter[state]': 'paid' }, 'filter%5Bstate%5D=paid&page=2'],
    ['with a list counted', { 'state[]': ['a', 'b'] }, 'state%5B0%5D=a&state%5B1%5D=b&page=2'],
    ['with a list counted in another order', { 'state[]': ['a', 'b'] }, 'state[1]=b&state[0]=a&page=2'],
    ['with a list counted beyond nine', { 'state[]': 'a' }, 'state[10]=a&page=2'],
    ['with a list not counted in another order', { 'state[]': ['a', 'b'] }, 'state[]=b&page=2&state[]=a'],
    ['with a list no longer counted', { 'state[0]': 'a', 'state[1]': 'b' }, 'state[]=a&state[]=b&page=2'],
    [
      'with a list in brackets',
      { 'filter[state][]': ['a', 'b'] },
      'filter[state][0]=a&filter[state][1]=b&page=2',
    ],
    ['with a name given twice in another order', { state: ['a', 'b'] }, 'state=b&state=a&page=2'],
    ['with one that is empty', { state: 'paid', q: '' }, 'state=paid&q=&page=2'],
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

function addressesOf(filters: Filters): (page: number) => URL {
  return createAddresses({ baseUrl: BASE, path: PATH, filters })
}

describe('the address of a request', () => {
  it.each<[string, Filters, number, string]>([
    ['the page alone', {}, 1, 'page=1'],
    ['a list as often as it has values', { 'state[]': ['a', 'b'] }, 1, 'state%5B%5D=a&state%5B%5D=b&page=1'],
    ['an empty filter', { q: '' }, 1, 'q=&page=1'],
  ])('holds %s', (_case, filters, page, expected) => {
    expect(addressesOf(filters)(page).href).toBe(`${LIST}?${expected}`)
  })

  it('begins with the prefix of baseUrl', () => {
    const addressOf = createAddresses({ baseUrl: `${BASE}/proxied`, path: PATH, filters: {} })

    expect(addressOf(2).href).toBe(`${BASE}/proxied${PATH}?page=2`)
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
        const link = addressesOf(sent)(page + 1).href

        expect(read(link, { filters: sent, currentPage: page })).toEqual({ page: page + 1 })
      }),
    )
  })
})
