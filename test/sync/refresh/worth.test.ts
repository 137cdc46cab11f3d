import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterNewest,
  afterOlder,
  agedShare,
  learn,
  newFreshness,
  nextOfVisit,
  nextReading,
  type SharingList,
  shareRules,
  withBands,
} from '../../../src/sync/refresh/worth.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = Date.UTC(2026, 10, 20)
const RULES = shareRules(60, 10)

/** A list whose newest end was read so many minutes ago, and its older pages an hour ago. */
function listOf(
  minutes: number,
  more: Partial<SharingList> & { news?: number; rate?: number } = {},
): SharingList {
  const { news = 16, rate = 0.001, lastPage = 4000, ...others } = more
  const known = withBands(newFreshness(lastPage * 25, NOW - HOUR), lastPage, true, NOW - HOUR)
  const bands = known.bands.map((band) => ({ ...band, rate }))
  const freshness = { ...known, news, newestAt: NOW - minutes * MINUTE, bands }
  return { freshness, lastPage, shown: 1, every: 5 * MINUTE, walkEvery: DAY, ...others }
}

/** What is read next, as `name newest` or `name 3`. */
function nextOf(lists: Record<string, SharingList>, level = 0): string | null {
  const named = Object.entries(lists).map(([name, list]) => ({ ...list, name }))
  const next = nextReading(named, { at: NOW, level }, RULES, NOW)
  return next && `${next.list.name} ${next.reading.band === null ? 'newest' : next.reading.depth}`
}

it.each([
  [null, 10, { perMinute: 6, chunk: 6 }],
  [300, 10, { perMinute: 30, chunk: 30 }],
  [60, 0.1, { perMinute: 0.06, chunk: 6 }],
])('the share of %s requests a minute is %d percent of them: %j', (limit, percent, rules) => {
  expect(shareRules(limit, percent)).toEqual(rules)
})

it.each([
  [0, 9],
  [1, 3],
  [2, 0],
  [-5, 9],
])('after %d minutes a level of 9 is %d', (minutes, level) => {
  expect(agedShare({ at: NOW, level: 9 }, RULES, NOW + minutes * MINUTE).level).toBeCloseTo(level)
})

describe('a rate', () => {
  it.each([
    { found: 0, minutes: 0, becomes: 0.5 },
    { found: 5, minutes: 10, becomes: 0.5 },
    { found: 20, minutes: 0, becomes: 1 },
    { found: 0, minutes: 40, becomes: 0.25 },
  ])('of 0.5 is $becomes after $found rows in $minutes minutes', ({ found, minutes, becomes }) => {
    expect(learn(0.5, found, minutes)).toBeCloseTo(becomes)
  })

  it('stays a number above 0 where nothing is ever found, and where the clock was set back', () => {
    let known = withBands(newFreshness(0, NOW), 100, true, NOW)
    for (let read = 1; read < 10_000; read++) {
      known = afterNewest(known, { added: 0, changed: 0 }, NOW + read * HOUR)
      known = afterOlder(known, { band: read % 6, depth: 2 ** ((read % 6) + 1) }, 0, 100, NOW + read * HOUR)
    }
    const back = afterNewest(known, { added: 1, changed: 0 }, NOW)

    for (const rate of [known.news, back.news, ...known.bands.map((band) => band.rate)]) {
      expect(rate).toBeGreaterThan(0)
      expect(rate).toBeLessThan(2)
    }
  })
})

/** The news of an end whose first two readings found so many new rows each. */
function newsOf(added: number): number {
  const readAt = [9, 18].map((minutes) => NOW + minutes * MINUTE)
  return readAt.reduce((known, at) => afterNewest(known, { added, changed: 0 }, at), newFreshness(300, NOW))
    .news
}

it('a list that turns out to be busy is told from quiet ones by its second reading', () => {
  expect(newsOf(27) / newsOf(0)).toBeGreaterThan(10)
})

describe('the bands of a list', () => {
  it.each([
    [1, true, 0],
    [3, true, 1],
    [4, true, 2],
    [4000, true, 11],
    [4000, false, 1],
  ])('of %d pages, its end known: %s, are %d', (pages, hasEnd, bands) => {
    expect(withBands(newFreshness(1000, NOW), pages, hasEnd, NOW).bands).toHaveLength(bands)
  })

  it('keep what is known while it grows and shrinks, and forget it with its end', () => {
    const known = withBands(newFreshness(1000, NOW), 7, true, NOW)
    const learned = { ...known, bands: known.bands.map((band) => ({ ...band, rate: 0.5 })) }
    const rates = (pages: number, hasEnd: boolean) =>
      withBands(learned, pages, hasEnd, NOW).bands.map(({ rate }) => rate)

    expect(rates(8, true)).toEqual([0.5, 0.5, 0.25])
    expect(rates(3, true)).toEqual([0.5])
    expect(rates(7, false)).not.toContain(0.5)
  })

  it('are read from the far end inwards, without the pages that the newest end shows', () => {
    let list = listOf(1, { lastPage: 16, shown: 5 })
    const depths: number[] = []
    for (let read = 0; read < 4; read++) {
      // Only the pages 4 to 7.
      const bands = list.freshness.bands.map((band, index) => (index === 1 ? band : { ...band, at: NOW }))
      list = { ...list, freshness: { ...list.freshness, bands } }
      const reading = nextReading([list], { at: NOW, level: 0 }, RULES, NOW)?.reading
      if (!reading) break
      depths.push(reading.depth)
      list = { ...list, freshness: afterOlder(list.freshness, reading, 0, 16, NOW) }
    }

    expect(depths).toEqual([7, 6, 7, 6])
  })

  it('learn nothing of a page that could not be read, which has had its turn', () => {
    const { freshness } = listOf(1)
    const after = afterOlder(freshness, { band: 3, depth: 31 }, null, 4000, NOW).bands[3]

    expect(after).toMatchObject({ rate: 0.001, read: 1 })
    expect((after?.at ?? 0) - (NOW - HOUR)).toBeCloseTo(HOUR / 16)
  })
})

describe('what is read next', () => {
  const twenty = (rate: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`l${index}`, listOf(6, { rate })]))

  it.each<[string, Record<string, SharingList>, string | null, number?]>([
    ['nothing of none', {}, null],
    ['no newest end before its time', { a: listOf(4.9, { rate: 1e-9 }) }, 'a 3'],
    ['a newest end that is due', { a: listOf(5, { rate: 10 }) }, 'a newest'],
    ['one that was read by a clock that was ahead', { a: listOf(-90) }, 'a newest'],
    ['the one with more news', { a: listOf(6), b: listOf(6, { news: 32 }) }, 'b newest'],
    ['the one that waited longer', { a: listOf(6), b: listOf(7) }, 'b newest'],
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
  ])('is %s', (_what, lists, next, level = 0) => {
    expect(nextOf(lists, level)).toBe(next)
  })

  it.each([
    [1, 6, 1, true],
    [6, 6, 1, false],
    [1, 6.1, 1, false],
    [1, 1, 5, false],
  ])('goes on after %d older pages at level %d, %d minutes after the newest end: %s', (...how) => {
    const [pages, level, minutes, goesOn] = how
    expect(nextOfVisit(listOf(minutes), { at: NOW, level }, RULES, pages, NOW) !== null).toBe(goesOn)
  })
})

/** A list as it was begun, and what each reading of it finds. */
const begun = fc.record({
  lastPage: fc.integer({ min: 1, max: 3000 }),
  every: fc.constantFrom(2000, 60_000, 300_000),
  found: fc.integer({ min: 0, max: 40 }),
})

it('over any time, of any lists: the level is bounded, no rate is lost, and none is left out for ever', () => {
  fc.assert(
    fc.property(
      fc.array(begun, { minLength: 1, maxLength: 12 }),
      fc.array(fc.integer({ min: 100, max: 120_000 }), { minLength: 200, maxLength: 300 }),
      (settings, pauses) => {
        let now = NOW
        let share = { at: now, level: 0 }
        const lists = settings.map((setting) => {
          const freshness = withBands(newFreshness(setting.lastPage * 25, now), setting.lastPage, true, now)
          return { ...setting, freshness, shown: 1, walkEvery: DAY }
        })
        for (const pause of pauses) {
          now += pause
          share = agedShare(share, RULES, now)
          const next = nextReading(lists, share, RULES, now)
          if (!next) continue
          const { list, reading } = next
          share = { at: now, level: share.level + reading.cost }
          list.freshness =
            reading.band === null
              ? afterNewest(list.freshness, { added: list.found, changed: 0 }, now)
              : afterOlder(list.freshness, reading, list.found, list.lastPage, now)
          expect(share.level).toBeLessThanOrEqual(1.5 * RULES.chunk + reading.cost)
        }
        for (const { freshness } of lists) {
          const rates = [freshness.news, ...freshness.bands.map(({ rate }) => rate)]
          expect(rates.every((rate) => rate > 0 && Number.isFinite(rate))).toBe(true)
        }
        for (const list of lists) list.freshness = { ...list.freshness, newestAt: now }
        const last = lists.at(-1)
        if (last) last.freshness = { ...last.freshness, newestAt: now - 60 * DAY }
        expect(nextReading(lists, { at: now, level: 0 }, RULES, now)?.list).toBe(last)
      },
    ),
    { numRuns: 100 },
  )
})
