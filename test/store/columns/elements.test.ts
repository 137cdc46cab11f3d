import { describe, expect, it } from 'vitest'
import type { Column, ColumnType } from '../../../src/store/columns/column.ts'
import { type ColumnCount, misfitIn, nextCounts } from '../../../src/store/columns/counts.ts'
import { extendElements } from '../../../src/store/columns/elements.ts'
import { elementsOf, item } from './items.ts'

describe('extendElements', () => {
  // The rules of items (row.test.ts), but for what SQL reads as a double that is another number.
  it.each<[string[], string]>([
    [['1', '20.0', '"2"', 'true', 'null'], 'a INTEGER'],
    [['1', '"2"', '"x"'], 'a INTEGER, a__text TEXT'],
    [['1', '1.5', '"1.50"'], 'a REAL'],
    [['1.5', '9007199254740994'], 'a REAL'],
    [['1.5', '"0.1234567890123456"'], 'a REAL, a__text TEXT'],
    [['1.5', '"9007199254740993"'], 'a REAL, a__text TEXT'],
    [['1.5', '9007199254740994.0'], 'a REAL'],
    [['9007199254740993.0'], 'a TEXT'],
    [['1e400', '1'], 'a TEXT'],
    [['1.5e+300'], 'a TEXT'],
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

describe('the class of a value that is not in its column', () => {
  it.each<[ColumnType, string, string | null]>([
    ['INTEGER', '"x"', 'text'],
    ['INTEGER', '"1.5"', 'text'],
    ['INTEGER', '"15"', 'fitting'],
    ['INTEGER', '1.5', 'fraction'],
    ['INTEGER', '12345678901234567890', 'large'],
    ['REAL', '9007199254740993', 'large'],
    ['REAL', '"1.5"', 'fitting'],
    ['REAL', 'true', 'boolean'],
    ['REAL', '[1]', 'list'],
    ['TEXT', 'false', 'boolean'],
    ['TEXT', '7', 'fitting'],
    ['TEXT', 'null', null],
    ['TEXT', '{"b":1}', 'object'],
  ])('of %s: %s', (type, text, misfit) => {
    expect(misfitIn(item(`{"a":{"x.y":${text}}}`), { path: '$.a."x.y"', type })).toBe(misfit)
    expect(misfitIn(item(`{"a":${text}}`), { path: '$.a."x.y"', type })).toBe(null)
  })
})

const former = (more: Partial<ColumnCount<string>> = {}): ColumnCount<string> => ({
  column: 'a',
  filled: 0,
  misfits: 0,
  objects: 0,
  misfit: null,
  lastFilledAt: null,
  emptied: 0,
  ...more,
})

describe('what is counted of a column', () => {
  const main: Column = { name: 'a', path: '$.a', type: 'INTEGER', role: 'value', wide: false }
  const next = (
    counted: { filled?: number; misfits?: number; objects?: number; rows?: number; role?: Column['role'] },
    before?: Partial<ColumnCount<string>>,
  ) => {
    const { filled = 0, misfits = 0, objects = 0, rows = 5, role = 'value' } = counted
    const found = { column: 'a', main: { ...main, role }, filled, misfits, objects, misfitRow: null }
    const counts = before ? [former(before)] : []
    return nextCounts([{ ...found, misfit: 'text' as const }], rows, { counts, asOf: 'then' })
  }

  it.each<[string, Parameters<typeof next>, Partial<ColumnCount<string>>[]]>([
    ['nothing, and there never was anything', [{}], []],
    ['the first values', [{ filled: 2 }], [{ filled: 2 }]],
    ['objects beside values', [{ filled: 3, objects: 2 }], [{ filled: 3, objects: 2, misfit: 'text' }]],
    ['misfits alone', [{ misfits: 2 }], [{ misfits: 2, misfit: 'text' }]],
    ['no value any more', [{}, { filled: 2 }], [{ lastFilledAt: 'then', emptied: 1 }]],
    ['no misfit any more', [{}, { misfits: 2 }], [{ emptied: 1 }]],
    [
      'misfits in place of all values',
      [{ misfits: 2 }, { filled: 2 }],
      [{ misfits: 2, misfit: 'text', lastFilledAt: 'then' }],
    ],
    [
      'still no value',
      [{}, { emptied: 1, lastFilledAt: 'before' }],
      [{ lastFilledAt: 'before', emptied: 1 }],
    ],
    ['values again', [{ filled: 1 }, { emptied: 1, lastFilledAt: 'before' }], [{ filled: 1 }]],
    ['no rows any more', [{ rows: 0 }, { filled: 2 }], [{ lastFilledAt: 'then' }]],
    ['no misfit in a __text column', [{ role: 'text' }, { filled: 2 }], [{ lastFilledAt: 'then' }]],
  ])('is %s', (_what, [counted, before], expected) => {
    expect(next(counted, before)).toEqual(expected.map(former))
  })
})
