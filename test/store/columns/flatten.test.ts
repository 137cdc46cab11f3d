import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../src/json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../src/json/value.ts'
import { createPathTree, flatten, type Leaf, pathOf, nodeAt } from '../../../src/store/columns/flatten.ts'

describe('flatten', () => {
  it.each([
    [
      '{"a":1,"b":null,"c":"x","d":true}',
      [
        ['a', 1],
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
    expect(flat(text)).toEqual(expected)
  })

  it('visits a number that is kept as text', () => {
    expect(flat('{"a":1.10}')).toEqual([['a', JSON.rawJSON('1.10')]])
  })

  it('passes what the tree knows about each path', () => {
    const tree = createPathTree<string>()
    nodeAt(tree, ['a', 'b']).at = 'known'
    const found: unknown[] = []

    flatten(object('{"a":{"b":1,"c":2},"b":3}'), tree, (place, known) => {
      found.push([pathOf(place), known])
    })

    expect(found).toEqual([
      [['a', 'b'], 'known'],
      [['a', 'c'], undefined],
      [['b'], undefined],
    ])
  })
})

function flat(text: string): [path: string, value: Leaf][] {
  const found: [path: string, value: Leaf][] = []
  flatten(object(text), undefined, (place, _known, value) => {
    found.push([pathOf(place).join('.'), value])
  })
  return found
}

function object(text: string): JsonObject {
  const value = parseExact(text)
  return isJsonObject(value) ? value : {}
}
