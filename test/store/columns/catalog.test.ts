import { expect, it } from 'vitest'
import { keyValues } from '../../../src/store/columns/catalog.ts'

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
