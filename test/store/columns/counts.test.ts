import { describe, expect, it } from 'vitest'
import type { Column, ColumnType } from '../../../src/store/columns/column.ts'
import { type ColumnCount, misfitIn, nextCounts } from '../../../src/store/columns/counts.ts'
import { item } from './items.ts'

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
