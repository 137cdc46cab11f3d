import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../../src/json/value.ts'
import { SQLITE_LIMITS } from '../../../src/store/columns/column.ts'
import { type ElementColumn, extendElements as extend } from '../../../src/store/columns/elements.ts'
import { elementsOf } from './items.ts'

const extendElements = (known: readonly ElementColumn[], array: readonly JsonValue[]) =>
  extend(known, array, SQLITE_LIMITS)

describe('extendElements', () => {
  it.each<[string[], string]>([
    [['1', '20.0', '"2"', 'true', 'null'], 'a INTEGER'],
    [['1', '"2"', '"x"'], 'a INTEGER'],
    [['1', '1.5', '"1.50"'], 'a REAL'],
    [['1.5', '1'], 'a REAL'],
    [['"x"', '1', '1.5'], 'a TEXT'],
    [['1e400', '1'], 'a TEXT'],
    [['[2]', '{"0":2,"2":3}'], 'a TEXT'],
    [['1', '[2]'], 'a INTEGER'],
  ])('gives the values %j one column of the type of the first, and fractions room: %s', (texts, columns) => {
    const list = texts.map((text) => `{"a":${text}}`)

    for (const arrays of [[`[${list.join()}]`], list.map((text) => `[${text}]`)])
      expect(
        elementsOf(arrays)
          .map(({ name, type }) => `${name} ${type}`)
          .join(', '),
      ).toBe(columns)
  })

  it('flattens objects and names their fields like the columns of items', () => {
    const columns = elementsOf([
      '[{"a":{"b":1},"a__b":2,"_id":3,"ID":4,"id":null},{"id":5,"":6,"rowid":7,"true":8}]',
    ])

    expect(columns.map(({ name, path }) => [name, path])).toEqual([
      ['a__b', '$.a.b'],
      ['a__b_2', '$.a__b'],
      ['field_id', '$._id'],
      ['ID', '$.ID'],
      ['id_2', '$.id'],
      ['field', '$.""'],
      ['rowid', '$.rowid'],
      ['true_2', '$.true'],
    ])
  })

  it('ignores elements that are not objects', () => {
    expect(
      extendElements([], [1, 'x', null, [], [{ a: 1 }], JSON.rawJSON('1.0'), {}, { a: null }]),
    ).toBeNull()
  })

  it('returns nothing if nothing changed, and never changes its argument', () => {
    const known = elementsOf(['[{"a":1,"b":"x"}]'])

    expect(extendElements(known, [{ b: 1.5, a: 2 }, { a: null }])).toBeNull()
    expect(extendElements(known, [{ a: 'x', c: 1 }])).toHaveLength(3)
    expect(known.map(({ name, type }) => [name, type])).toEqual([
      ['a', 'INTEGER'],
      ['b', 'TEXT'],
    ])
  })

  it('stops at 500 columns, and still widens those', () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`f${at}`, at]))

    const full = extendElements([], [many]) ?? []

    expect(full).toHaveLength(500)
    expect(extendElements(full, [{ further: 1, f1: 'x', deep: { more: 1 } }])).toBeNull()
    expect(extendElements(full, [{ f0: 1.5, further: 1 }])?.[0]?.type).toBe('REAL')
  })
})
