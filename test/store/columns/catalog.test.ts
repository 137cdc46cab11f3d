import { describe, expect, it } from 'vitest'
import { keyColumnTypes, keyValues } from '../../../src/store/columns/catalog.ts'

describe('keyColumnTypes', () => {
  it.each([
    [null, true, 'INTEGER'],
    [null, false, 'TEXT'],
    ['INTEGER', true, 'INTEGER'],
    ['INTEGER', false, 'TEXT'],
    ['TEXT', true, 'TEXT'],
    ['TEXT', false, 'TEXT'],
  ] as const)(
    'a key column that is %s becomes, with a JSON integer (%s), %s',
    (current, integer, expected) => {
      expect(keyColumnTypes([current], [{ text: '1', integer }])).toEqual([expected])
    },
  )
})

it.each<[string, 'INTEGER' | 'TEXT', bigint | string | null]>([
  ['7', 'INTEGER', 7n],
  ['-7', 'INTEGER', -7n],
  ['9223372036854775807', 'INTEGER', 9_223_372_036_854_775_807n],
  ['9223372036854775808', 'INTEGER', null],
  ['007', 'INTEGER', null],
  ['7a', 'INTEGER', null],
  ['007', 'TEXT', '007'],
])('the key %s stands in a key column that is %s as %s', (text, type, value) => {
  expect(keyValues([{ text }], [type])).toEqual(value === null ? null : [value])
})
