import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyColumns } from '../../../src/store/columns/catalog.ts'
import {
  columnName,
  foldName,
  parseSqlitePath,
  SQLITE_LIMITS,
  sqlitePath,
} from '../../../src/store/columns/column.ts'
import { eventKeyNames } from '../../../src/store/core/views.ts'
import { names } from '../../json/arbitrary.ts'

describe('columnName', () => {
  it.each([
    [['a', '_id'], 'a___id'],
    [['a\0b'], 'a_b'],
    [['\0'], 'field_'],
    [['a\ud800'], 'a_'],
    [['😀'], '😀'],
    [['n'.repeat(2001)], 'n'.repeat(2000)],
    [[`${'n'.repeat(1999)}😀`], `${'n'.repeat(1999)}_`],
  ])('calls %j %s', (path, name) => {
    expect(columnName(path, () => false)).toBe(name)
  })

  it.each([
    [['Id'], ['id', 'id_2', 'id_3'], 'Id_4'],
    [['É'], ['é'], 'É'],
  ])('with %j beside %j: %s', (path, taken, name) => {
    expect(columnName(path, (candidate) => taken.includes(foldName(candidate)))).toBe(name)
  })
})

it.each([
  ['at', 'at_2'],
  ['AT at_2', 'AT_2 at_2_2'],
  ['change before id', 'change_2 before_2 id'],
  ['customer__at', 'customer__at'],
])('the key %s is called %s in the events', (key, expected) => {
  expect(eventKeyNames(keyColumns(key.split(' ')), SQLITE_LIMITS)).toEqual(expected.split(' '))
})

const extract = new Database(':memory:')
  .prepare<[string, string], number>('SELECT json_extract(?, ?)')
  .pluck()

describe('sqlitePath', () => {
  it('leads SQLite to the value, with any names', () => {
    fc.assert(
      fc.property(fc.array(names, { minLength: 1, maxLength: 3 }), names, (path, other) => {
        const inner = path.reduceRight<unknown>((value, name) => Object.fromEntries([[name, value]]), 7)
        const around = untilNul(other) === untilNul(path[0] ?? '') ? [] : [[other, 8]]

        const json = JSON.stringify(Object.fromEntries([...around, ...Object.entries(Object(inner))]))

        expect(extract.get(json, sqlitePath(path))).toBe(7)
      }),
      { numRuns: 1000 },
    )
  })

  it('can be parsed, so different paths have different texts', () => {
    fc.assert(
      fc.property(fc.array(names), (path) => {
        expect(parseSqlitePath(sqlitePath(path))).toEqual(path)
      }),
      { numRuns: 1000 },
    )
  })
})

/** SQLite compares names only up to a NUL. */
function untilNul(name: string): string {
  return name.replace(/\0.*/s, '')
}
