import { describe, expect, it } from 'vitest'
import { coarserExpressions, wakeExpression } from '../../src/schedule/derived.ts'

describe('the moments to wake up at', () => {
  it.each([
    ['each hour, four times', [0], [0], '0 0,15,30,45 * * * *'],
    ['around the hour', [0], [50], '0 50,5,20,35 * * * *'],
    ['no more often than the schedule, where that is even', [0], [0, 15, 30, 45], '0 0,15,30,45 * * * *'],
    ['by the second', [0, 30], [7, 22], '0,30 7,22,37,52 * * * *'],
  ])('are %s', (_, second, minute, expected) => {
    expect(wakeExpression({ second, minute })).toBe(expected)
  })
})

it('the coarser forms of an expression leave its finer fields open', () => {
  const fields = {
    second: [0],
    minute: [5, 20],
    hour: [3],
    dayOfMonth: ['L', '15W'],
    month: [1, 2],
    dayOfWeek: [0, '5L'],
  }

  expect(coarserExpressions(fields)).toEqual({
    day: '* * * L,15W 1,2 0,5L',
    hour: '* * 3 L,15W 1,2 0,5L',
    minute: '* 5,20 3 L,15W 1,2 0,5L',
    second: '0 5,20 3 L,15W 1,2 0,5L',
  })
})
