import { describe, expect, it } from 'vitest'
import { meanStepOfSlices, median, ratiosOf, spreadOf } from './statistics.ts'

describe('the median', () => {
  it.each([
    [[7], 7],
    [[9, 1, 10], 9],
    [[4, 1, 3, 2], 2.5],
    [[100, 9, 20], 20],
    [[0.5, -1, 0.25], 0.25],
  ])('of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected)
  })

  it('of nothing is not made up', () => {
    expect(() => median([])).toThrow(RangeError)
  })

  it('leaves the figures in their order', () => {
    const values = [3, 1, 2]

    median(values)

    expect(values).toEqual([3, 1, 2])
  })
})

describe('the spread', () => {
  it('has the least and the most beside the median', () => {
    expect(spreadOf([5, 3, 11])).toEqual({ median: 5, least: 3, most: 11 })
  })
})

describe('ratios', () => {
  it('are of figures of the same round', () => {
    expect(ratiosOf([10, 30, 9], [5, 10, 18])).toEqual([2, 3, 0.5])
  })

  it('are refused where a round is missing', () => {
    expect(() => ratiosOf([1, 2], [1])).toThrow(RangeError)
  })
})

describe('the mean step of slices', () => {
  it.each([
    { moments: [0, 1, 2, 4, 6], count: 2, expected: [1, 2] },
    { moments: [10, 12, 15], count: 1, expected: [2.5] },
    { moments: [10, 12, 15], count: 10, expected: [2, 3] },
    { moments: [0, 1, 2, 3, 7, 11], count: 2, expected: [1, 4] },
    { moments: [0, 3, 6, 9, 12, 15, 18], count: 3, expected: [3, 3, 3] },
  ])('$count of $moments are $expected', ({ moments, count, expected }) => {
    expect(meanStepOfSlices(moments, count)).toEqual(expected)
  })
})
