import { describe, expect, it } from 'vitest'
import type { CollectionConfig } from '../../src/config/organizations.ts'
import { load, SMALLEST } from './config-files.ts'

function loadCollections(
  top: string,
  ofOrganization = '',
): { top: CollectionConfig[]; own: CollectionConfig[] } {
  const override = ofOrganization === '' ? '' : `    collections:\n      ${ofOrganization}\n`
  const { collections, organizations } = load(`${SMALLEST}${override}collections:\n  ${top}\n`)
  return { top: collections, own: organizations[0]?.collections ?? [] }
}

describe('the collections', () => {
  it.each<[top: string, own: string, expectedTop: string[], expectedOwn: string[]]>([
    ['', '', ['orders', 'establishments'], ['orders', 'establishments']],
    ['invoices: {}', '', ['orders', 'establishments', 'invoices'], ['orders', 'establishments', 'invoices']],
    ['orders: false', '', ['establishments'], ['establishments']],
    ['orders: false', 'orders: true', ['orders', 'establishments'], ['orders', 'establishments']],
    ['orders: true', 'orders: false', ['orders', 'establishments'], ['establishments']],
  ])('with %j and for the organization %j are %j, synced %j', (top, own, expectedTop, expectedOwn) => {
    const collections = loadCollections(top, own)

    expect(collections.top.map(({ name }) => name)).toEqual(expectedTop)
    expect(collections.own.map(({ name }) => name)).toEqual(expectedOwn)
  })

  it('take their path from their name unless it is given', () => {
    const { top } = loadCollections('Invoice_Lines: {}\n  things: { path: /v2/all-things }')

    expect(top.slice(2).map(({ path }) => path)).toEqual(['/api/v1/admin/Invoice_Lines', '/v2/all-things'])
  })

  it.each<[settings: string, expected: Partial<CollectionConfig>]>([
    ['history: 90d', { history: 7_776_000_000 }],
    ['ignore: [seen_at, meta.hits]', { ignore: ['seen_at', 'meta.hits'] }],
    ['total: ignore', { total: 'ignore' }],
  ])('take %s', (settings, expected) => {
    expect(loadCollections(`orders:\n    ${settings}`).top[0]).toMatchObject(expected)
  })

  it.each([
    ['12345678901234567890', '12345678901234567890'],
    ['true', 'true'],
    ['"null"', 'null'],
    ['"a $$ b"', 'a $ b'],
    ['[01, b, 1e3]', ['01', 'b', '1e3']],
  ])('send the filter value %s as it was typed', (typed, sent) => {
    const { top } = loadCollections(`orders: { filters: { "state[]": ${typed} } }`)

    expect(top[0]?.filters).toEqual({ 'state[]': sent })
  })

  it("have an organization's settings instead of their own, and its filters instead of all theirs", () => {
    const orders = 'orders: { key: order_id, filters: { a: 1, b: 2 }, history: 5d, ignore: [x] }'
    const override = 'orders: { filters: { state: paid }, path: /other, ignore: [], total: ignore }'

    const { top, own } = loadCollections(orders, override)

    expect(top[0]).toMatchObject({ filters: { a: '1', b: '2' }, path: '/api/v1/admin/orders', ignore: ['x'] })
    expect(own[0]).toEqual({
      name: 'orders',
      path: '/other',
      key: ['order_id'],
      filters: { state: 'paid' },
      history: 432_000_000,
      ignore: [],
      total: 'ignore',
      newest: 'auto',
    })
  })
})
