import { describe, expect, it } from 'vitest'
import { eventKeyNames } from '../../../src/store/core/changes-view.ts'

describe('eventKeyNames', () => {
  it.each<[string[], string[]]>([
    [['id'], ['id']],
    [['at'], ['at_2']],
    [
      ['AT', 'at_2'],
      ['AT_3', 'at_2'],
    ],
    [
      ['change', 'before', 'id'],
      ['change_2', 'before_2', 'id'],
    ],
    [['customer__at'], ['customer__at']],
  ])('calls the key %j in the events %j', (key, expected) => {
    expect(eventKeyNames(key)).toEqual(expected)
  })
})
