import { describe, expect, it } from 'vitest'
import { keyColumnTypes } from '../../../src/store/columns/catalog.ts'

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
