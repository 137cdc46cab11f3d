import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterNewest,
  afterOlder,
  agedShare,
  type Freshness,
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
const EMPTY = { at: NOW, level: 0 }

/** A list of this many pages whose newest end was read so many minutes ago, and its older pages an hour ago. */
function listOf(
  minutes: number,
  more: Partial<SharingList> & { news?: number; rate?: number } = {},
): SharingList {
  const { news = 16, rate = 0.001, pages = 4000, ...others } = more
  const known = withBands(newFreshness(pages * 25, NOW - HOUR), pages, true, NOW - HOUR)
  const bands = known.bands.map((band) => ({ ...band, rate }))
  const freshness = { ...known, news, newestAt: NOW - minutes * MINUTE, bands }
  return { freshness, pages, shown: 1, every: 5 * MINUTE, walkEvery: DAY, ...others }
}

/** Twenty lists with such older pages. */
function many(rate: number): Record<string, SharingList> {
  return Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`l${index}`, listOf(6, { rate })]))
}

/** What is read next, as `name newest` or `name 2-3`. */
function nextOf(lists: Record<string, SharingList>, level = 0): string | null {
  const named = Object.entries(lists).map(([name, list]) => ({ ...list, name }))
  const next = nextReading(named, { at: NOW, level }, RULES, NOW)
  return next && `${next.list.name} ${next.reading.band === null ? 'newest' : next.reading.depth}`
}

describe('the share of a budget', () => {
  it.each([
    { limit: null, percent: 10, perMinute: 6, chunk: 6 },
    { limit: 300, percent: 10, perMinute: 30, chunk: 30 },
    { limit: 60, percent: 0.1, perMinute: 0.06, chunk: 6 },
    { limit: 6000, percent: 100, perMinute: 6000, chunk: 6000 },
  ])('of $percent % of $limit requests is $perMinute a minute', ({ limit, percent, ...rules }) => {
    expect(shareRules(limit, percent)).toEqual(rules)
  })

  it.each([
    { minutes: 0, level: 9 },
    { minutes: 1, level: 3 },
    { minutes: 2, level: 0 },
    { minutes: -5, level: 9 },
  ])('carries what was sent, after $minutes minutes', ({ minutes, level }) => {
    expect(agedShare({ at: NOW, level: 9 }, RULES, NOW + minutes * MINUTE).level).toBeCloseTo(level)
  })
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
      expect(rate).toBeLessThan(1)
    }
  })

  it('of news counts a new row sixteen times', () => {
    const known = { ...newFreshness(100_000, NOW), news: 16 }

    expect(afterNewest(known, { added: 10, changed: 0 }, NOW).news).toBeCloseTo(32)
    expect(afterNewest(known, { added: 0, changed: 16 }, NOW).news).toBeCloseTo(17.6)
  })
})

describe('the bands of a list', () => {
  it.each([
    { pages: 1, hasEnd: true, bands: 0 },
    { pages: 3, hasEnd: true, bands: 1 },
    { pages: 4, hasEnd: true, bands: 2 },
    { pages: 4000, hasEnd: true, bands: 11 },
    { pages: 4000, hasEnd: false, bands: 1 },
  ])('of $pages pages, its end known: $hasEnd, are $bands', ({ pages, hasEnd, bands }) => {
    expect(withBands(newFreshness(1000, NOW), pages, hasEnd, NOW).bands).toHaveLength(bands)
  })

  it('keep what is known while it grows and shrinks, and forget it with its end', () => {
    const known = withBands(newFreshness(1000, NOW), 7, true, NOW)
    const learned: Freshness = { ...known, bands: known.bands.map((band) => ({ ...band, rate: 0.5 })) }
    const rates = (pages: number, hasEnd: boolean) =>
      withBands(learned, pages, hasEnd, NOW).bands.map(({ rate }) => rate)

    expect(rates(8, true)).toEqual([0.5, 0.5, 0.25])
    expect(rates(3, true)).toEqual([0.5])
    expect(rates(7, false)).not.toContain(0.5)
  })

  it('are read from the far end inwards, without the pages that the newest end shows', () => {
    let list = listOf(1, { pages: 16, shown: 5 })
    const depths: number[] = []
    for (let read = 0; read < 9; read++) {
      // Only the pages 4 to 7.
      const bands = list.freshness.bands.map((band, index) => (index === 1 ? band : { ...band, at: NOW }))
      list = { ...list, freshness: { ...list.freshness, bands } }
      const reading = nextReading([list], EMPTY, RULES, NOW)?.reading
      if (!reading) break
      depths.push(reading.depth)
      list = { ...list, freshness: afterOlder(list.freshness, reading, 0, 16, NOW) }
    }

    expect(depths.slice(0, 4)).toEqual([7, 6, 7, 6])
  })

  it('are due again as a whole, whatever was found, or could not be read', () => {
    const list = listOf(1, { pages: 4000 })
    const after = afterOlder(list.freshness, { band: 3, depth: 31 }, null, 4000, NOW).bands[3]

    expect(after).toMatchObject({ rate: 0.001, read: 1 })
    expect((after?.at ?? 0) - (NOW - HOUR)).toBeCloseTo(HOUR / 16)
  })
})

describe('what is read next', () => {
  it.each([
    { what: 'nothing of none', lists: {}, next: null },
    { what: 'no newest end before its time', lists: { a: listOf(4.9, { rate: 1e-9 }) }, next: 'a 3' },
    { what: 'a newest end that is due', lists: { a: listOf(5, { rate: 10 }) }, next: 'a newest' },
    { what: 'the one with more news', lists: { a: listOf(6), b: listOf(6, { news: 32 }) }, next: 'b newest' },
    { what: 'the one that waited longer', lists: { a: listOf(6), b: listOf(7) }, next: 'b newest' },
    {
      what: 'a quiet one in the end',
      lists: { a: listOf(6), b: listOf(90, { news: 0.01 }) },
      next: 'b newest',
    },
    { what: 'pages that change more', lists: { a: listOf(1), b: listOf(1, { rate: 0.002 }) }, next: 'b 3' },
    {
      what: 'not what is read already',
      lists: { a: listOf(9, { isTaken: true }), b: listOf(6) },
      next: 'b newest',
    },
    { what: 'a list that was walked a moment ago', lists: { a: listOf(1, { walkEvery: 1 }) }, next: 'a 3' },
    { what: 'no older page of a short list', lists: { a: listOf(1, { pages: 4 }) }, next: null },
    {
      what: 'the newest end of a list that is walked, before all others',
      lists: { a: listOf(5, { isWalked: true, news: 1 }), b: listOf(50, { news: 100 }) },
      next: 'a newest',
    },
  ])('is $what', ({ lists, next }) => {
    expect(nextOf(lists)).toBe(next)
  })

  it('are older pages, where the share does not carry all newest ends, if these are worth more', () => {
    expect([nextOf(many(1e-6)), nextOf(many(10))]).toEqual(['l0 newest', 'l0 3'])
  })

  it.each([
    { level: 9, lists: { a: listOf(5) }, next: 'a newest' },
    { level: 9.1, lists: { a: listOf(5) }, next: null },
    { level: 0, lists: { a: listOf(1) }, next: 'a 3' },
    { level: 0.1, lists: { a: listOf(1) }, next: null },
  ])('waits at level $level until the share has room: $next', ({ level, lists, next }) => {
    expect(nextOf(lists, level)).toBe(next)
  })

  it.each([
    { pages: 1, level: 6, minutes: 1, goesOn: true },
    { pages: 6, level: 6, minutes: 1, goesOn: false },
    { pages: 1, level: 6.1, minutes: 1, goesOn: false },
    { pages: 1, level: 1, minutes: 5, goesOn: false },
  ])('goes on after $pages older pages at level $level: $goesOn', ({ pages, level, minutes, goesOn }) => {
    expect(nextOfVisit(listOf(minutes), { at: NOW, level }, RULES, pages, NOW) !== null).toBe(goesOn)
  })
})

/** A list as it was begun, and how long a reading of it is charged for. */
const begun = fc.record({
  pages: fc.integer({ min: 1, max: 3000 }),
  every: fc.constantFrom(2000, 60_000, 300_000),
  found: fc.integer({ min: 0, max: 40 }),
})

describe('over any time, of any lists that are refreshed so', () => {
  it('the level stays below a chunk and a half and one reading, no rate is lost, and none is left out for ever', () => {
    fc.assert(
      fc.property(
        fc.array(begun, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 100, max: 120_000 }), { minLength: 200, maxLength: 300 }),
        (settings, pauses) => {
          let now = NOW
          let share = { at: now, level: 0 }
          const lists = settings.map(({ pages, every }) => ({
            freshness: withBands(newFreshness(pages * 25, now), pages, true, now),
            pages,
            shown: 1,
            every,
            walkEvery: DAY,
          }))
          for (const pause of pauses) {
            now += pause
            share = agedShare(share, RULES, now)
            const next = nextReading(lists, share, RULES, now)
            if (!next) continue
            const { list, reading } = next
            const found = settings[lists.indexOf(list)]?.found ?? 0
            share = { at: now, level: share.level + reading.cost }
            list.freshness =
              reading.band === null
                ? afterNewest(list.freshness, { added: found, changed: 0 }, now)
                : afterOlder(list.freshness, reading, found, list.pages, now)
            expect(share.level).toBeLessThanOrEqual(1.5 * RULES.chunk + reading.cost)
          }
          for (const { freshness } of lists) {
            const rates = [freshness.news, ...freshness.bands.map(({ rate }) => rate)]
            expect(rates.every((rate) => rate > 0 && Number.isFinite(rate))).toBe(true)
          }
          // Whoever waits long enough is next.
          for (const list of lists) list.freshness = { ...list.freshness, newestAt: now }
          const [last] = lists
          if (!last) return
          last.freshness = { ...last.freshness, newestAt: now - 60 * DAY }
          expect(nextReading(lists, { at: now, level: 0 }, RULES, now)?.list).toBe(last)
        },
      ),
      { numRuns: 100 },
    )
  })
})
