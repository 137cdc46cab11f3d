import { describe, expect, it } from 'vitest'
import { estimateDistinct } from '../../../../src/store/core/describe.ts'

describe('the estimate of distinct values', () => {
  it.each([
    ['of nothing', { filled: 0, sampled: 0, distinct: 0, once: 0 }, 0],
    [
      'of values that all differ',
      { filled: 1_000_000, sampled: 100_000, distinct: 100_000, once: 100_000 },
      1_000_000,
    ],
    ['of few values', { filled: 1_000_000, sampled: 100_000, distinct: 5, once: 0 }, 5],
    ['of the whole', { filled: 1000, sampled: 1000, distinct: 700, once: 500 }, 700],
    ['of some that come seldom', { filled: 1_000_000, sampled: 100_000, distinct: 1000, once: 100 }, 1001],
    ['beyond all values', { filled: 10, sampled: 10, distinct: 10, once: 10 }, 10],
  ])('is right %s', (_, sample, expected) => {
    expect(estimateDistinct(sample)).toBe(expected)
  })
})
