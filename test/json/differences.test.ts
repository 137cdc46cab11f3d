import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { differingPaths } from '../../src/json/differences.ts'
import { parseExact } from '../../src/json/exact.ts'
import { sameJson } from '../../src/json/same.ts'
import { jsonTexts } from './arbitrary.ts'

describe('differingPaths', () => {
  it.each([
    ['the same value written otherwise', '{"a":1.10,"b":[1,2]}', '{"b":[1,2.0],"a":1.1}', []],
    ['a value', '{"a":1,"b":2}', '{"a":1,"b":3}', ['b']],
    ['a nested value', '{"c":{"d":{"e":1,"f":1}}}', '{"c":{"d":{"e":2,"f":1}}}', ['c.d.e']],
    ['fields on either side alone', '{"a":1,"c":{"d":1}}', '{"a":1,"c":{"e":null}}', ['c.d', 'c.e']],
    ['a list, as a whole', '{"l":[{"a":1},2]}', '{"l":[{"a":2},2]}', ['l']],
    ['an object where a text was', '{"c":{"d":1}}', '{"c":"x"}', ['c']],
    ['names of Object.prototype', '{}', '{"constructor":1,"__proto__":2}', ['constructor', '__proto__']],
    ['an empty name', '{"a":{"":1}}', '{"a":{"":2}}', ['a.']],
    ['values that are no objects', '1', '2', ['']],
  ])('of two items tells %s', (_, a, b, expected) => {
    expect(differingPaths(parseExact(a), parseExact(b), new Set())).toEqual(expected)
  })

  it('leaves ignored paths out, and stops where it has told enough', () => {
    const [a, b] = ['{"a":1,"c":{"t":1,"u":1},"d":1,"e":1}', '{"a":2,"c":{"t":2,"u":2},"d":2}']

    const paths = (most?: number) => differingPaths(parseExact(a), parseExact(b), new Set(['c.t', 'e']), most)

    expect(paths()).toEqual(['a', 'c.u', 'd'])
    expect(paths(2)).toEqual(['a', 'c.u'])
  })

  it('tells none exactly where two values are the same', () => {
    const ignored = fc.constantFrom('a', 'b', 'a.b', 'id')
    fc.assert(
      fc.property(jsonTexts, jsonTexts, fc.array(ignored), (left, right, ignore) => {
        const [a, b] = [parseExact(left), parseExact(right)]
        const set = new Set(ignore)
        expect(differingPaths(a, b, set).length === 0).toBe(sameJson(a, b, set))
        expect(differingPaths(a, a, set)).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })
})
