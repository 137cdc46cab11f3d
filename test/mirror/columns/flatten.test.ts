import { describe, expect, it } from 'vitest'
import { isJsonObject, type JsonObject, parseExact } from '../../../src/json/exact.ts'
import { flatten } from '../../../src/mirror/columns/flatten.ts'

describe('flatten', () => {
  it.each([
    [
      '{"a":1,"b":null,"c":"x","d":true}',
      [
        ['a', 1],
        ['b', null],
        ['c', 'x'],
        ['d', true],
      ],
    ],
    [
      '{"a":{"b":{"c":1},"d":2}}',
      [
        ['a.b.c', 1],
        ['a.d', 2],
      ],
    ],
    [
      '{"a":[{"b":1}],"c":[]}',
      [
        ['a', [{ b: 1 }]],
        ['c', []],
      ],
    ],
    ['{"a":{},"b":{"c":{}}}', []],
    ['{}', []],
  ])('of %s', (text, expected) => {
    expect(flatten(object(text)).map(([path, value]) => [path.join('.'), value])).toEqual(expected)
  })

  it('takes a number that is kept as text for a value', () => {
    expect(flatten(object('{"a":1.10}'))).toEqual([[['a'], JSON.rawJSON('1.10')]])
  })
})

function object(text: string): JsonObject {
  const value = parseExact(text)
  return isJsonObject(value) ? value : {}
}
