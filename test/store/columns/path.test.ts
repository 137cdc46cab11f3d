import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSqlitePath, sqlitePath } from '../../../src/store/columns/flatten.ts'
import { names } from '../../json/arbitrary.ts'

const extract = new Database(':memory:')
  .prepare<[string, string], number>('SELECT json_extract(?, ?)')
  .pluck()

describe('sqlitePath', () => {
  it.each([
    [['id'], '$.id'],
    [['customer', 'email'], '$.customer.email'],
    [['customer_id'], '$.customer_id'],
    [['_id'], '$._id'],
    [['first name'], '$.first name'],
    [['été-1'], '$.été-1'],
    [['a.b', 'c'], '$."a.b".c'],
    [['a[0]'], '$."a[0]"'],
    [[''], '$.""'],
    [['a"b'], '$."a\\"b"'],
    [['a\\b'], '$."a\\\\b"'],
    [['a\0b'], '$."a\\u0000b"'],
    [['\ud800'], '$."\\ud800"'],
  ])('writes %j as %s', (path, text) => {
    expect(sqlitePath(path)).toBe(text)
  })

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
