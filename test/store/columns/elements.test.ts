import { describe, expect, it } from 'vitest'
import { extendElements } from '../../../src/store/columns/elements.ts'
import { elementsOf } from './items.ts'

describe('extendElements', () => {
  // The rules of items (row.test.ts), but for what SQL reads as a double that is another number.
  it.each<[string[], string]>([
    [['1', '20.0', '"2"', 'true', 'null'], 'a INTEGER'],
    [['1', '"2"', '"x"'], 'a INTEGER, a__text TEXT'],
    [['1', '1.5', '"1.50"'], 'a REAL'],
    [['1.5', '9007199254740994'], 'a REAL'],
    [['1.5', '"0.1234567890123456"'], 'a REAL, a__text TEXT'],
    [['1.5', '"9007199254740993"'], 'a REAL, a__text TEXT'],
    [['1.5', '9007199254740994.0'], 'a REAL, a__text TEXT'],
    [['9007199254740993.0'], 'a TEXT'],
    [['1e400', '1'], 'a TEXT'],
    [['1', '[2]'], 'a INTEGER, a__text TEXT'],
  ])('gives the values %j columns by the rules of items: %s', (texts, columns) => {
    const list = texts.map((text) => `{"a":${text}}`)

    for (const arrays of [[`[${list.join()}]`], list.map((text) => `[${text}]`)])
      expect(
        elementsOf(arrays)
          .map(({ name, type }) => `${name} ${type}`)
          .join(', '),
      ).toBe(columns)
  })

  it('flattens objects and names their fields like the columns of items', () => {
    const columns = elementsOf(['[{"a":{"b":1},"a__b":2,"_id":3,"ID":4,"id":null},{"id":5,"":6,"rowid":7}]'])

    expect(columns.map(({ name, path }) => [name, path])).toEqual([
      ['a__b', '$.a.b'],
      ['a__b_2', '$.a__b'],
      ['field_id', '$._id'],
      ['ID', '$.ID'],
      ['id_2', '$.id'],
      ['field', '$.""'],
      ['rowid', '$.rowid'],
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
    expect(extendElements(known, [{ a: 'x', c: 1 }])?.elements).toHaveLength(4)
    expect(known.map(({ name, type }) => [name, type])).toEqual([
      ['a', 'INTEGER'],
      ['b', 'TEXT'],
    ])
  })

  it('stops at 500 columns, says so once, and still widens those', () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`f${at}`, at]))

    const full = extendElements([], [many])

    expect(full?.elements).toHaveLength(500)
    expect(full?.warnings).toEqual([expect.stringMatching(/500 discovered columns/)])
    expect(extendElements(full?.elements ?? [], [{ further: 1, f1: 'x' }])).toBeNull()
    const widened = extendElements(full?.elements ?? [], [{ f0: 1.5, further: 1 }])
    expect([widened?.elements[0]?.type, widened?.warnings]).toEqual(['REAL', []])
  })
})
