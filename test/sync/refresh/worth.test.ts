import { describe, expect, it } from 'vitest'
import {
  afterNewest,
  afterOlder,
  type Freshness,
  learn,
  levelAt,
  newFreshness,
  nextReading,
  pageOf,
  shareOf,
  type SharingList,
  withBands,
} from '../../../src/sync/refresh/worth.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const NOW = Date.UTC(2026, 10, 20)
const SHARE = 6
const PACE = { every: 5 * MINUTE }

const freshness = (lastPage: number, at = NOW): Freshness =>
  withBands(newFreshness(lastPage * 25, lastPage, at), 'first', at)

/** A list whose newest end was read so many minutes ago, and its older pages an hour ago. */
function listOf(minutes: number, more: Partial<SharingList> & { rate?: number } = {}): SharingList {
  const { rate = 0.001, lastPage = 4000, ...others } = more
  const known = freshness(lastPage, NOW - HOUR)
  const bands = known.bands.map((band) => ({ ...band, rate }))
  return { ...known, shown: 1, news: 16, newestAt: NOW - minutes * MINUTE, bands, ...PACE, ...others }
}

it.each([
  [null, 10, 6],
  [300, 10, 30],
  [60, 0.1, 0.06],
])('of %s requests a minute %d percent are %d', (limit, percent, perMinute) => {
  expect(shareOf(limit, percent)).toBeCloseTo(perMinute)
})

it.each([
  [1, 3],
  [2, 0],
  [-1, 9],
  [-5, 0],
])('after %d minutes a level of 9 is %d', (minutes, level) => {
  expect(levelAt({ at: NOW, level: 9 }, SHARE, NOW + minutes * MINUTE)).toBeCloseTo(level)
})

/** The news of an end after readings that found so much. */
function newsOf(...found: { added: number; changed: number }[]): number {
  return found.reduce((known, one) => afterNewest(known, one, known.newestAt + 9 * MINUTE), freshness(12))
    .news
}

describe('what is learned', () => {
  it.each([
    [20, 0, 1],
    [0, 40, 0.25],
  ])('of a rate of 0.5 by %d rows in %d minutes is %d', (found, minutes, becomes) => {
    expect(learn(0.5, found, minutes)).toBeCloseTo(becomes)
  })

  it('at an end: a new row counts as 16 changed ones, and a busy list is told from quiet ones by its second reading', () => {
    const none = newsOf({ added: 0, changed: 0 })
    const busy = { added: 27, changed: 0 }

    expect(newsOf({ added: 2, changed: 0 })).toBeCloseTo(newsOf({ added: 0, changed: 32 }))
    expect(newsOf(busy, busy) / none).toBeGreaterThan(15)
  })

  it('of a page that could not be read is nothing, and it has had its turn', () => {
    const after = afterOlder(listOf(1), { band: 3, depth: 31 }, null, NOW).bands[3]

    expect(after).toMatchObject({ rate: 0.001, read: 1 })
    expect((after?.at ?? 0) - (NOW - HOUR)).toBeCloseTo(HOUR / 16)
  })
})

describe('the bands of a list', () => {
  it.each([
    [1, 'first', 0],
    [3, 'last', 1],
    [4000, 'first', 11],
    [4000, null, 1],
  ] as const)('of %d pages, whose newest end is %s, are %d', (pages, newest, bands) => {
    expect(withBands(newFreshness(1000, pages, NOW), newest, NOW).bands).toHaveLength(bands)
  })

  it('keep what is known while it grows and shrinks, and forget it with its end', () => {
    const known = freshness(7)
    const learned = { ...known, bands: known.bands.map((band) => ({ ...band, rate: 0.5 })) }
    const rates = (lastPage: number, newest: 'first' | 'last' | null) =>
      withBands({ ...learned, lastPage }, newest, NOW).bands.map(({ rate }) => rate)

    expect(rates(8, 'first')).toEqual([0.5, 0.5, 0.25])
    expect(rates(3, 'first')).toEqual([0.5])
    expect(rates(7, null)).not.toContain(0.5)
    expect(rates(7, 'last')).not.toContain(0.5)
  })

  it.each([
    ['first', [7, 6, 7, 6]],
    ['last', [10, 11, 10, 11]],
  ] as const)('are read from the far end inwards, without pages that the end shows: %s', (newest, pages) => {
    let list = listOf(1, { lastPage: 16, shown: 5, newest })
    const read = pages.map(() => {
      // Only the pages 4 to 7.
      list = { ...list, bands: list.bands.map((band, index) => (index === 1 ? band : { ...band, at: NOW })) }
      const reading = nextReading([list], 0, SHARE, NOW)?.reading ?? null
      if (reading) list = afterOlder(list, reading, 0, NOW)
      return reading && pageOf(list, reading)
    })

    expect(read).toEqual(pages)
  })
})

describe('what is read next', () => {
  const twenty = (rate: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`l${index}`, listOf(6, { rate })]))

  it.each<[string, Record<string, SharingList>, string | null, number?]>([
    ['no newest end before its time', { a: listOf(4.9, { rate: 1e-9 }) }, 'a 3'],
    ['a newest end that is due', { a: listOf(5, { rate: 10 }) }, 'a newest'],
    ['one that was read by a clock that was ahead', { a: listOf(-90) }, 'a newest'],
    ['the one with more news', { a: listOf(6), b: listOf(6, { news: 32 }) }, 'b newest'],
    ['a quiet one in the end', { a: listOf(6), b: listOf(90, { news: 0.01 }) }, 'b newest'],
    ['pages that change more', { a: listOf(1), b: listOf(1, { rate: 0.002 }) }, 'b 3'],
    ['not what is read already', { a: listOf(9, { isTaken: true }), b: listOf(6) }, 'b newest'],
    ['no older page of a short list', { a: listOf(1, { lastPage: 4 }) }, null],
    [
      'the newest end of a list that is walked, before all others',
      { a: listOf(5, { isWalked: true, news: 1 }), b: listOf(50, { news: 100 }) },
      'a newest',
    ],
    ['newest ends, where the share does not carry all', twenty(1e-6), 'l0 newest'],
    ['older pages, if these are worth more then', twenty(10), 'l0 3'],
    ['a newest end up to 1.5 chunks', { a: listOf(5) }, 'a newest', 9],
    ['nothing beyond', { a: listOf(5) }, null, 9.1],
    ['no older page before all is carried', { a: listOf(1) }, null, 0.1],
  ])('is %s', (_what, lists, expected, level = 0) => {
    const named = Object.entries(lists).map(([name, list]) => ({ ...list, name }))
    const next = nextReading(named, level, SHARE, NOW)

    const { band, depth } = next?.reading ?? {}
    expect(next && `${next.list.name} ${band === null ? 'newest' : depth}`).toBe(expected)
  })

  it.each([
    [1, 6, 1, true],
    [6, 6, 1, false],
    [1, 6.1, 1, false],
    [1, 1, 5, false],
    [5, 5, 1, false, 5],
  ])('goes on after %d older pages at level %d, %d minutes after the newest end: %s', (...how) => {
    const [pages, level, minutes, goesOn, lastPage = 4000] = how
    expect(nextReading([listOf(minutes, { lastPage })], level, SHARE, NOW, pages) !== null).toBe(goesOn)
  })
})
