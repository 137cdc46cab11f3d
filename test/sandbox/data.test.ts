import { describe, expect, it } from 'vitest'
import { type Collection, createData, type DataOptions } from '../../src/sandbox/data.ts'
import { phpJson } from '../../src/sandbox/envelope.ts'

const OPTIONS: DataOptions = { seed: 1, organization: 0, orders: 100, establishments: 40, live: false }

function textOf(collection: Collection, count: number, tick = 0): string {
  return phpJson(Array.from({ length: count }, (_, index) => collection.itemAt(index, tick)))
}

describe('createData', () => {
  it('returns the same bytes for the same seed', () => {
    const [one, other] = [createData(OPTIONS), createData(OPTIONS)]
    const [living, alike] = [createData({ ...OPTIONS, live: true }), createData({ ...OPTIONS, live: true })]

    expect(textOf(one.orders, 100)).toBe(textOf(other.orders, 100))
    expect(textOf(living.orders, 100, 5000)).toBe(textOf(alike.orders, 100, 5000))
    expect(textOf(one.establishments, 40)).toBe(textOf(other.establishments, 40))
  })

  it.each([
    ['seed', { ...OPTIONS, seed: 2 }],
    ['organization', { ...OPTIONS, organization: 1 }],
  ])('returns other data for another %s', (_, options) => {
    const [one, other] = [createData(OPTIONS), createData(options)]

    expect(textOf(one.orders, 100)).not.toBe(textOf(other.orders, 100))
    expect(textOf(one.establishments, 40)).not.toBe(textOf(other.establishments, 40))
  })

  it('appends when the number of orders is raised, and leaves the others as they were', () => {
    const [small, large] = [createData(OPTIONS), createData({ ...OPTIONS, orders: 100_000 })]

    expect(textOf(large.orders, 100)).toBe(textOf(small.orders, 100))
  })

  it('changes orders as time goes by, and establishments never', () => {
    const { orders, establishments } = createData({ ...OPTIONS, live: true })

    expect(textOf(orders, 100, 600)).not.toBe(textOf(orders, 100))
    expect(textOf(establishments, 40, 600)).toBe(textOf(establishments, 40))
  })
})

describe('an order', () => {
  const { orders, establishments } = createData({ ...OPTIONS, orders: 2000 })
  const items = Array.from({ length: 2000 }, (_, index) => orders.itemAt(index, 0))

  it('looks like this', () => {
    expect(items[122]).toMatchObject({
      id: expect.any(Number),
      number: 'ORD-000123',
      total: expect.stringMatching(/^\d+\.\d\d$/),
      total_cents: expect.any(Number),
      is_gift: expect.any(Boolean),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000000Z$/),
    })
    expect(Object.keys(items[122] ?? {})).toHaveLength(25)
  })

  it('has an id and a reference number that no other has, ids rising', () => {
    const ids = items.map(({ id }) => Number(id))
    const references = items.map((item) => phpJson(item.reference_number))

    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? 0))).toBe(true)
    expect(new Set(references).size).toBe(2000)
    expect(references.every((reference) => /^[1-9]\d{18,19}$/.test(reference))).toBe(true)
  })

  it.each<[string, (text: string) => boolean]>([
    ['no customer', (text) => text.includes('"customer":null')],
    ['a zip with a leading zero', (text) => text.includes('"zip":"0')],
    ['a name beyond ASCII', (text) => /"name":"[^"]*\\u/.test(text)],
    ['an empty map as a list', (text) => text.includes('"metadata":[]')],
    ['a map', (text) => text.includes('"metadata":{"')],
    ['no tags', (text) => text.includes('"tags":[]')],
    ['tags', (text) => text.includes('"tags":["')],
    ['a discount of 20.0, written by PHP', (text) => text.includes('"discount":20,')],
    ['a discount of 1.10, written by PHP', (text) => text.includes('"discount":1.1,')],
    ['an escaped slash', (text) => text.includes(String.raw`https:\/\/`)],
    ['no delivery yet', (text) => text.includes('"delivered_at":null')],
    ['a delivery', (text) => text.includes('"delivered_at":"20')],
  ])('sometimes has %s, and sometimes not', (_, holds) => {
    const texts = items.map((item) => phpJson(item))

    expect(texts.some(holds)).toBe(true)
    expect(texts.every(holds)).toBe(false)
  })

  it('names an establishment of its own organization', () => {
    const known = new Set(Array.from({ length: 40 }, (_, index) => establishments.itemAt(index, 0).id))

    expect(items.every(({ establishment_id }) => known.has(establishment_id))).toBe(true)
    expect(createData({ ...OPTIONS, establishments: 0 }).orders.itemAt(0, 0).establishment_id).toBeNull()
  })
})
