import { describe, expect, it } from 'vitest'
import { columnsToIndex } from '../../../../src/store/sqlite/publish/tables.ts'

function columns(text: string) {
  return text.split(' ').map((column) => {
    const [name = '', type = 'TEXT'] = column.split(':')
    return { name, type }
  })
}

describe('the indexes of a copy', () => {
  it.each<[string, string[], string[][]]>([
    [
      'id:INTEGER placed_at customer__id:INTEGER total_cents:INTEGER state currency note',
      ['id'],
      [['placed_at'], ['customer__id', 'currency', 'state', 'total_cents', '_organization_id']],
    ],
    [
      'sku name quantity:INTEGER price:REAL unit_price',
      [],
      [['sku', 'name', 'quantity', 'price', '_organization_id']],
    ],
    ['_organization_id _first_seen_at _changed_at id', ['id'], [['_first_seen_at'], ['_changed_at']]],
    // A time that is a number, a name that only ends like one of them.
    ['id created_at:INTEGER paid valid skunk flat', ['id'], []],
  ])('of %s', (text, keys, expected) => {
    expect(columnsToIndex(columns(text), keys)).toEqual(expected)
  })

  it('are few, however many columns look like it', () => {
    const many = Array.from({ length: 50 }, (_, n) => `a${n}_id b${n}_at c${n}_price:INTEGER`).join(' ')

    const lists = columnsToIndex(columns(many), ['id'])

    expect(lists).toHaveLength(8)
    expect(Math.max(...lists.map((list) => list.length))).toBe(5)
  })
})
