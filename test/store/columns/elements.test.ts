import { describe, expect, it } from 'vitest'
import { extendElements } from '../../../src/store/columns/elements.ts'
import { elementsOf } from './items.ts'

describe('extendElements', () => {
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
    expect(full?.warnings.map(({ kind }) => kind)).toEqual(['too-many-columns'])
    expect(extendElements(full?.elements ?? [], [{ further: 1, f1: 'x' }])).toBeNull()
    const widened = extendElements(full?.elements ?? [], [{ f0: 1.5, further: 1 }])
    expect([widened?.elements[0]?.type, widened?.warnings]).toEqual(['REAL', []])
  })
})
