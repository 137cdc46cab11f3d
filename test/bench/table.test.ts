import { describe, expect, it } from 'vitest'
import { digits, figure, markdownTable, median, type Row, ratioOf } from './table.ts'

const ROW: Row = {
  scenario: 'first sync',
  what: '25 orders',
  unit: 'ms',
  ours: [20, 60, 30],
  against: 'got loop',
  theirs: [10, 20, 30],
}

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

  it('of nothing is an error', () => {
    expect(() => median([])).toThrow(RangeError)
  })
})

describe('a ratio', () => {
  it('compares the figures of the same round', () => {
    expect(ratioOf(ROW)).toEqual({ median: 2, least: 1, most: 3 })
  })

  it('is an error if a round is missing', () => {
    expect(() => ratioOf({ ...ROW, theirs: [1] })).toThrow(RangeError)
  })
})

describe('a figure', () => {
  it.each([
    [0, 'ms', '0 ms'],
    [4.256, 'ms', '4.26 ms'],
    [812.6, 'ms', '813 ms'],
    [12_345, 'ms', '12.3 s'],
    [204_800, 'kB', '200 MB'],
    [1234.4, 'pages/s', '1234 pages/s'],
  ] as const)('of %d in %s reads %s', (value, unit, expected) => {
    expect(figure(value, unit)).toBe(expected)
  })

  it.each([
    [0.01234, '0.0123'],
    [0.5, '0.500'],
    [9.999, '10.00'],
    [33.333, '33.3'],
    [100, '100'],
    [-2.5, '-2.50'],
  ])('has three digits: %d reads %s', (value, expected) => {
    expect(digits(value)).toBe(expected)
  })
})

describe('the table', () => {
  it('has the medians of both sides and of their ratios, with the least and the most ratio', () => {
    expect(markdownTable([ROW]).split('\n')).toEqual([
      '| scenario | measured | ours | against | theirs | ours / theirs | least - most |',
      '| --- | --- | ---: | --- | ---: | ---: | ---: |',
      '| first sync | 25 orders | 30.0 ms | got loop | 20.0 ms | 2.00 | 1.00 - 3.00 |',
    ])
  })
})
