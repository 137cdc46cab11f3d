import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { discoverElements, type ElementColumn } from '../../../src/store/columns/elements.ts'
import { items } from '../../json/arbitrary.ts'
import { elementsOf } from './items.ts'

describe('discoverElements', () => {
  it.each([
    [['1', '20.0'], 'INTEGER'],
    [['true', 'false'], 'INTEGER'],
    [['1', '1.5'], 'REAL'],
    [['1.5', '9007199254740994'], 'REAL'],
    [['9007199254740993', '1'], 'INTEGER'],
    [['9007199254740993', '1.5'], 'TEXT'],
    [['9007199254740993.0'], 'TEXT'],
    [['true', '1'], 'TEXT'],
    [['true', '1.5'], 'TEXT'],
    [['1', '"x"'], 'TEXT'],
    [['1', 'null', '"x"', '2'], 'TEXT'],
    [['12345678901234567890'], 'TEXT'],
    [['1e400', '1'], 'TEXT'],
    [['[1]'], 'TEXT'],
  ])('gives a column with %j one type, in any order', (texts, type) => {
    const arrays = [texts, texts.toReversed()].map((list) => list.map((text) => `{"a":${text}}`))

    const found = arrays.map((list) => [
      elementsOf([`[${list.join()}]`]),
      elementsOf(list.map((text) => `[${text}]`)),
    ])

    expect(
      found.flat().map((columns) => columns.map((column) => [column.name, column.path, column.type])),
    ).toEqual(Array.from({ length: 4 }, () => [['a', '$.a', type]]))
  })

  it('flattens objects and names their fields like the columns of items', () => {
    const columns = elementsOf(['[{"a":{"b":1},"a__b":2,"_id":3,"ID":4,"id":null},{"id":5,"":6}]'])

    expect(columns.map(({ name, path }) => [name, path])).toEqual([
      ['a__b', '$.a.b'],
      ['a__b_2', '$.a__b'],
      ['field_id', '$._id'],
      ['ID', '$.ID'],
      ['id_2', '$.id'],
      ['field', '$.""'],
    ])
  })

  it('ignores elements that are not objects', () => {
    const known: ElementColumn[] = []

    expect(
      discoverElements(known, [1, 'x', null, [], [{ a: 1 }], JSON.rawJSON('1.0'), {}, { a: null }]),
    ).toBe(known)
  })

  it('returns the same list if nothing changed, and never changes its argument', () => {
    const known = discoverElements([], [{ a: 1, b: 'x' }])

    expect(discoverElements(known, [{ b: 1.5, a: 2 }, { a: null }])).toBe(known)
    expect(discoverElements(known, [{ a: 'x', c: 1 }])).toHaveLength(3)
    expect(known.map(({ type }) => type)).toEqual(['INTEGER', 'TEXT'])
  })

  it('stops at 500 columns, and still widens those', () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`f${at}`, at]))

    const full = discoverElements([], [many])

    expect(full).toHaveLength(500)
    expect(discoverElements(full, [{ further: 1 }])).toBe(full)
    expect(discoverElements(full, [{ f0: 'x', further: 1 }])[0]?.type).toBe('TEXT')
  })

  it('gives the same types in any order of the elements', () => {
    fc.assert(
      fc.property(fc.array(items), (list) => {
        expect(typesOf(discoverElements([], list))).toEqual(typesOf(discoverElements([], list.toReversed())))
      }),
    )
  })
})

function typesOf(columns: readonly ElementColumn[]): Map<string, string> {
  return new Map(columns.map(({ path, holds }) => [path, holds]))
}
