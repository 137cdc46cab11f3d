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
})

describe('an order', () => {
  const { orders, establishments } = createData({ ...OPTIONS, orders: 2000 })
  const items = Array.from({ length: 2000 }, (_, index) => orders.itemAt(index, 0))

  it('has an id and a reference number that no other has, ids rising', () => {
    const ids = items.map(({ id }) => Number(id))
    const references = items.map((item) => phpJson(item.reference_number))

    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? 0))).toBe(true)
    expect(new Set(references).size).toBe(2000)
    expect(references.every((reference) => /^[1-9]\d{18,19}$/.test(reference))).toBe(true)
  })

  it('names an establishment of its own organization', () => {
    const known = new Set(Array.from({ length: 40 }, (_, index) => establishments.itemAt(index, 0).id))

    expect(items.every(({ establishment_id }) => known.has(establishment_id))).toBe(true)
    expect(createData({ ...OPTIONS, establishments: 0 }).orders.itemAt(0, 0).establishment_id).toBeNull()
  })
})
