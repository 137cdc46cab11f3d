import { describe, expect, it } from 'vitest'
import {
  agedShare,
  between,
  charge,
  isWalkedWhole,
  LATE_MS,
  mayBegin,
  newestEvery,
  newShare,
  period,
  priceOf,
  shareRules,
  turnOf,
} from '../../../src/sync/refresh/price.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const NOW = Date.UTC(2026, 10, 20)

const RULES = shareRules(60, 10)

describe('the share of a budget', () => {
  it.each([
    { limit: 60, percent: 10, perMinute: 5.82, chunk: 6 },
    { limit: null, percent: 10, perMinute: 5.82, chunk: 6 },
    { limit: 300, percent: 10, perMinute: 29.2, chunk: 30 },
    { limit: 0.5, percent: 10, perMinute: 0.0107, chunk: 6 },
  ])('is $perMinute requests a minute of $limit at $percent %', ({ limit, percent, perMinute, chunk }) => {
    const rules = shareRules(limit, percent)

    expect(rules.perMinute).toBeCloseTo(perMinute, 1)
    expect(rules.chunk).toBe(chunk)
  })

  it('used just so keeps its price; not used it falls by e an hour; used twice it rises by e', () => {
    let steady = newShare(NOW)
    let twice = newShare(NOW)
    for (let minute = 1; minute <= 60; minute++) {
      steady = charge(agedShare(steady, RULES, NOW + minute * MINUTE), RULES, RULES.perMinute)
      twice = charge(agedShare(twice, RULES, NOW + minute * MINUTE), RULES, 2 * RULES.perMinute)
    }

    expect(priceOf(newShare(NOW))).toBeCloseTo(20)
    expect(priceOf(steady)).toBeCloseTo(20)
    expect(priceOf(agedShare(newShare(NOW), RULES, NOW + HOUR))).toBeCloseTo(20 / Math.E)
    expect(priceOf(twice)).toBeCloseTo(20 * Math.E)
  })

  it.each([
    { what: 'nothing was used for a year', at: NOW + 8760 * HOUR, isLate: false, price: 0.03 },
    { what: 'the clock was set back', at: NOW - HOUR, isLate: false, price: 20 },
    { what: 'something waits for long', at: NOW + HOUR, isLate: true, price: 20 * Math.exp(-0.8) },
  ])('has the price $price where $what', ({ at, isLate, price }) => {
    const share = agedShare(newShare(NOW), RULES, at, isLate)

    expect(priceOf(share)).toBeCloseTo(price)
    expect(share).toMatchObject({ at, level: 0 })
  })

  it.each([
    { level: 0, newest: true, visit: true, older: true },
    { level: 1, newest: true, visit: true, older: true },
    { level: 1.1, newest: true, visit: false, older: true },
    { level: 6, newest: true, visit: false, older: true },
    { level: 6.1, newest: true, visit: false, older: false },
    { level: 9, newest: true, visit: false, older: false },
    { level: 9.1, newest: false, visit: false, older: false },
  ])('at level $level has room for a newest end: $newest, a visit: $visit, an older page: $older', (row) => {
    const share = { ...newShare(NOW), level: row.level }

    for (const reading of ['newest', 'visit', 'older'] as const)
      expect(mayBegin(share, RULES, reading)).toBe(row[reading])
    expect(agedShare(share, RULES, NOW + 2 * MINUTE).level).toBe(0)
  })

  it('is given back what was charged and not sent', () => {
    const charged = charge(newShare(NOW), RULES, 8)

    expect(charge(charged, RULES, -8)).toEqual(newShare(NOW))
    expect(agedShare(charge(newShare(NOW), RULES, -3), RULES, NOW).level).toBe(0)
  })

  it('counts twenty minutes as long', () => expect(LATE_MS).toBe(20 * MINUTE))
})

describe('how often a newest end is read', () => {
  it.each([
    { price: 1, news: 16, minutes: 5 },
    { price: 100, news: 16, minutes: 5 },
    { price: 200, news: 16, minutes: 7.1 },
    { price: 1e5, news: 16, minutes: 158 },
    // Two new rows an hour, one, and one a week.
    { price: 400, news: (2 * 16) / 60, minutes: 28 },
    { price: 400, news: 16 / 60, minutes: 30 },
    { price: 400, news: 16 / 10_080, minutes: 60 },
    { price: 1600, news: 16 / 10_080, minutes: 120 },
    { price: 100, news: 0.5, lastPage: 1, minutes: 28 },
    { price: 10, news: 0.5, lastPage: 4, minutes: 14.1 },
    { price: 100, news: 16 / 10_080, lists: 2, minutes: 5 },
    { price: 100, news: 16 / 10_080, lists: 4, minutes: 9.8 },
    { price: 100, news: 16 / 10_080, lists: 20, minutes: 49 },
    { price: 100, news: 16 / 10_080, lists: 100, minutes: 60 },
  ])('each $minutes minutes at the price $price of a list with $news news', (row) => {
    const { price, news, lastPage = 100, lists = 1000, minutes } = row
    const turn = turnOf(lists, RULES)

    expect(newestEvery(price, news, { every: 5 * MINUTE, turn, lastPage }) / MINUTE).toBeCloseTo(minutes, 0)
  })

  it.each([
    { lastPage: 1, expected: true },
    { lastPage: 4, expected: true },
    { lastPage: 5, expected: false },
  ])('a list of $lastPage pages is walked whole: $expected', ({ lastPage, expected }) => {
    expect(isWalkedWhole({ lastPage })).toBe(expected)
  })
})

describe('how often a page is read', () => {
  it.each([1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.25, 0.264, 0.27, 0.5, 0.9, 0.99, 0.999999])(
    'as soon as what has changed on it, times how long it waits, is worth the price: %d of all that may be',
    (worth) => {
      const rate = 0.02
      const x = (rate * period(rate, (worth * 625) / rate)) / 25

      expect((1 - (1 + x) * Math.exp(-x)) / worth).toBeCloseTo(1, 2)
    },
  )

  it('not at all where its rows are outdated again at once', () => {
    expect(period(1, 625)).toBe(Number.POSITIVE_INFINITY)
    expect(period(1, 1e9)).toBe(Number.POSITIVE_INFINITY)
    expect(period(1e9, 1)).toBe(Number.POSITIVE_INFINITY)
  })

  it('of few changes, as the square root of the price and of the time between two of them', () => {
    expect(period(1e-6, 10)).toBeCloseTo(Math.sqrt(20 / 1e-6), 0)
  })

  it.each([
    { rate: 0.1, walkEvery: 1440, expected: 15 },
    { rate: 0.1, walkEvery: 30, expected: 20 },
    { rate: 0.1, walkEvery: 20, expected: Number.POSITIVE_INFINITY },
    { rate: 1e-9, walkEvery: 1440, expected: Number.POSITIVE_INFINITY },
    { rate: 5, walkEvery: 1440, expected: 5 },
  ])('each $expected minutes at a rate of $rate, beside a walk each $walkEvery', (row) => {
    expect(between(row.rate, 10, row.walkEvery, 5)).toBeCloseTo(row.expected, -0.7)
  })
})
