import { describe, expect, it } from 'vitest'
import type { ColumnType } from '../../../src/store/columns/column.ts'
import { misfitIn } from '../../../src/store/columns/counts.ts'
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
