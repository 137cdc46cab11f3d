import { describe, expect, it } from 'vitest'
import type { Row } from './row.ts'
import { digits, figure, machineLine, markdownTable } from './table.ts'

describe('a figure', () => {
  it.each([
    [0, 'ms', '0 ms'],
    [4.256, 'ms', '4.26 ms'],
    [812.6, 'ms', '813 ms'],
    [12_345, 'ms', '12.3 s'],
    [204_800, 'kB', '200 MB'],
    [5.5, 'frames a page', '5.50 frames a page'],
    [1234.4, 'pages/s', '1234 pages/s'],
  ] as const)('of %d in %s reads %s', (value, unit, expected) => {
    expect(figure(value, unit)).toBe(expected)
  })
})

describe('digits', () => {
  it.each([
    [0.01234, '0.0123'],
    [0.5, '0.500'],
    [1, '1.00'],
    [9.999, '10.00'],
    [33.333, '33.3'],
    [100, '100'],
    [-2.5, '-2.50'],
  ])('of %d are %s', (value, expected) => {
    expect(digits(value)).toBe(expected)
  })
})

const ROW: Row = {
  scenario: 'first sync',
  what: '25 orders',
  unit: 'ms',
  ours: [20, 60, 30],
  against: 'got loop',
  others: [10, 20, 30],
}

describe('the table', () => {
  it('has the medians of both, and of the ratios of the rounds, with their spread', () => {
    const lines = markdownTable([ROW, { ...ROW, note: 'one of a kind' }]).split('\n')

    expect(lines).toEqual([
      '| scenario | measured | ours | against | theirs | ours / theirs | from - to | note |',
      '| --- | --- | ---: | --- | ---: | ---: | ---: | --- |',
      '| first sync | 25 orders | 30.0 ms | got loop | 20.0 ms | 2.00 | 1.00 - 3.00 |  |',
      '| first sync | 25 orders | 30.0 ms | got loop | 20.0 ms | 2.00 | 1.00 - 3.00 | one of a kind |',
    ])
  })
})

describe('the machine', () => {
  it('is told in one line', () => {
    const machine = {
      processor: 'Abacus',
      cores: 2,
      memoryGb: 24,
      system: 'Linux 6 x64',
      versions: { Node: '24', got: '16' },
    }

    expect(machineLine(machine)).toBe('Abacus, 2 cores, 24 GB, Linux 6 x64; Node 24, got 16')
  })
})
