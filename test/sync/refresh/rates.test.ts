import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterNewestEnd,
  afterPage,
  learn,
  nextOlder,
  notOwed,
  owe,
  periodsOf,
  type Rates,
  ratesOf,
  visitAt,
} from '../../../src/sync/refresh/rates.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)
const LIST = { pages: 20, total: 500, hasNewestEnd: true }

describe('a rate', () => {
  it.each([
    { what: 'keeps', found: 5, elapsed: 10, expected: 0.5 },
    {
      what: 'rises by a twentieth with each row that is found at once',
      found: 1,
      elapsed: 0,
      expected: 0.525,
    },
    { what: 'falls where nothing is found', found: 0, elapsed: 40, expected: 0.25 },
    { what: 'is hardly moved by little time', found: 0, elapsed: 1, expected: 0.488 },
  ])('$what', ({ found, elapsed, expected }) => {
    expect(learn(0.5, found, elapsed)).toBeCloseTo(expected, 3)
  })

  it('takes into account that a row which changed twice is found once', () => {
    // All of a page's rows, in a time in which each changes often.
    expect(learn(1, 25, 250, 20, 25)).toBeCloseTo(1, 3)
  })

  it('never becomes 0, infinite or no number, whatever is found', () => {
    const reading = fc.record({ found: fc.nat(25), elapsed: fc.double({ min: 0, max: 1e9, noNaN: true }) })
    fc.assert(
      fc.property(
        fc.array(reading, { maxLength: 200 }),
        fc.double({ min: 1e-9, max: 1e3, noNaN: true }),
        (readings, first) => {
          const rate = readings.reduce(
            (known, { found, elapsed }) => learn(known, found, elapsed, 20, 25),
            first,
          )
          expect(rate).toBeGreaterThan(0)
          expect(rate).toBeLessThan(Number.POSITIVE_INFINITY)
        },
      ),
    )
  })
})

describe('the bands of a list', () => {
  it.each([
    { pages: 1, hasNewestEnd: true, expected: [] },
    { pages: 2, hasNewestEnd: true, expected: [{ from: 2, to: 2 }] },
    {
      pages: 9,
      hasNewestEnd: true,
      expected: [
        { from: 2, to: 3 },
        { from: 4, to: 7 },
        { from: 8, to: 9 },
      ],
    },
    { pages: 9, hasNewestEnd: false, expected: [{ from: 1, to: 9 }] },
  ])('$pages pages, $hasNewestEnd', ({ pages, hasNewestEnd, expected }) => {
    const { bands } = ratesOf(null, { ...LIST, pages, hasNewestEnd }, NOW)

    expect(bands.map(({ from, to }) => ({ from, to }))).toEqual(expected)
  })

  it('begin as if all rows had come in a hundred days, and the deeper the rarer', () => {
    const { news, bands } = ratesOf(null, { ...LIST, total: 144_000 }, NOW)

    expect(news).toBe(16)
    expect(bands.map(({ rate }) => Number(rate.toFixed(3)))).toEqual([0.102, 0.047, 0.023, 0.014])
    expect(ratesOf(null, { ...LIST, total: 144_000, hasNewestEnd: false }, NOW).bands[0]?.rate).toBe(4 / 20)
    expect(ratesOf(null, { ...LIST, total: 0 }, NOW).news).toBeGreaterThan(0)
    expect(ratesOf(null, { ...LIST, total: null }, NOW).news).toBeCloseTo((16 * 500) / 144_000)
  })

  it('of a list that grew begin with half the rate of the one before; one that shrank forgets them', () => {
    const known = ratesOf(null, LIST, NOW)
    const grown = ratesOf(known, { ...LIST, pages: 40 }, NOW + 1)

    expect(grown.bands).toHaveLength(5)
    expect(grown.bands[4]?.rate).toBeCloseTo((known.bands[3]?.rate ?? 0) / 2)
    expect(grown.bandsAt).toBe(NOW)
    expect(ratesOf(grown, LIST, NOW)).toEqual(known)
  })

  it('begin anew where the newest end became known, or is no more', () => {
    const before = ratesOf(null, { ...LIST, hasNewestEnd: false }, NOW)
    const after = ratesOf({ ...before, news: 3 }, LIST, NOW + 1)

    expect(after).toMatchObject({ news: 3, hasNewestEnd: true, bandsAt: NOW + 1 })
    expect(after.bands).toHaveLength(4)
  })

  it('learn a newest end from rows that are added, and from changed ones by a sixteenth', () => {
    const rates = { ...ratesOf(null, LIST, NOW), news: 16 }

    expect(afterNewestEnd(rates, { added: 5, changed: 0 }, 5 * MINUTE).news).toBeCloseTo(16)
    expect(afterNewestEnd(rates, { added: 0, changed: 80 }, 5 * MINUTE).news).toBeCloseTo(16)
    expect(afterNewestEnd(rates, { added: 0, changed: 0 }, -5 * MINUTE).news).toBe(16)
  })
})

function read(rates: Rates): [Rates, number[]] {
  const pages: number[] = []
  let left = rates
  for (let next = nextOlder(left); next; next = nextOlder(left)) {
    pages.push(next.depth)
    left = notOwed(afterPage(left, next.band, 0, 1), next.band)
  }
  return [left, pages]
}

describe('a visit to older pages', () => {
  const PERIODS = [10, 20, 40, Number.POSITIVE_INFINITY]
  const RATES = ratesOf(null, LIST, NOW)
  const CHUNK = 6

  it.each([
    { periods: PERIODS, chunk: 6, minutes: 10 },
    { periods: [0.1, 0.1, 0.1, 0.1], chunk: 6, minutes: 1 },
    { periods: PERIODS.map(() => Number.POSITIVE_INFINITY), chunk: 6, minutes: Number.POSITIVE_INFINITY },
  ])('is due after $minutes minutes', ({ periods, chunk, minutes }) => {
    expect((visitAt(RATES, periods, chunk) - NOW) / MINUTE).toBeCloseTo(minutes)
  })

  it('reads as many pages of each band as its period says, from old to new, and goes on there', () => {
    const [first, one] = read(owe(RATES, PERIODS, CHUNK, NOW + 10 * MINUTE))
    const [second, two] = read(owe(first, PERIODS, CHUNK, NOW + 20 * MINUTE))

    expect(one).toEqual([3, 2, 7, 6, 15, 14])
    expect(two).toEqual([3, 2, 5, 4, 13, 12])
    expect(second.bandsAt).toBe(NOW + 20 * MINUTE)
    expect(read(owe(second, PERIODS, CHUNK, NOW + 20 * MINUTE))[1]).toEqual([])
  })

  it('owes no page twice, none of more than an hour, and none to a clock that was set back', () => {
    const [, pages] = read(owe(RATES, PERIODS, CHUNK, NOW + 1e9 * MINUTE))

    expect(new Set(pages).size).toBe(pages.length)
    expect(pages).toHaveLength(2 + 4 + 8)
    expect(read(owe(RATES, PERIODS, CHUNK, NOW - MINUTE))[1]).toEqual([])
    // What is not read stays owed, once.
    const twice = owe(owe(RATES, PERIODS, CHUNK, NOW + 60 * MINUTE), PERIODS, CHUNK, NOW + 120 * MINUTE)
    expect(read(twice)[1]).toHaveLength(2 + 4 + 8)
  })

  it('owes the pages of a visit that comes less often than once an hour, and no more', () => {
    const rare = PERIODS.map((period) => 100 * period)
    const due = visitAt(RATES, rare, CHUNK)

    expect((due - NOW) / MINUTE).toBeGreaterThan(60)
    const [, pages] = read(owe(RATES, rare, CHUNK, due))
    expect(pages.length).toBeGreaterThanOrEqual(CHUNK - rare.length)
    expect(pages.length).toBeLessThanOrEqual(CHUNK)
    expect(read(owe(RATES, rare, CHUNK, NOW + 1e9 * MINUTE))[1]).toEqual(pages)
  })

  it('stays within a list that grows and shrinks meanwhile', () => {
    const sizes = fc.array(fc.record({ pages: fc.integer({ min: 1, max: 200 }), minutes: fc.nat(90) }), {
      maxLength: 50,
    })
    fc.assert(
      fc.property(sizes, (steps) => {
        let now = NOW
        let rates = RATES
        for (const { pages, minutes } of steps) {
          now += minutes * MINUTE
          rates = ratesOf(rates, { ...LIST, pages }, now)
          const times = { every: 5 * MINUTE, walkEvery: 1440 * MINUTE }
          rates = owe(rates, periodsOf(rates, 1, times), CHUNK, now)
          for (let next = nextOlder(rates); next; next = nextOlder(rates)) {
            expect(next.depth).toBeGreaterThanOrEqual(2)
            expect(next.depth).toBeLessThanOrEqual(pages)
            rates = notOwed(afterPage(rates, next.band, 1, 1), next.band)
          }
        }
      }),
    )
  })
})
