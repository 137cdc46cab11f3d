import { describe, expect, it } from 'vitest'
import {
  DOUBT,
  type EndCounts,
  endsToRead,
  endsWorthReading,
  learnFromWalk,
  learnPlaces,
  NO_PLACES,
  newestEnd,
  type Places,
} from '../../../src/sync/refresh/ends.ts'

const NOTHING: EndCounts = { first: 0, last: 0, older: 0, rise: 0, all: 0 }
const HOUR = 3_600_000

describe('where new items appear', () => {
  it.each([
    { what: 'found at an end', found: { first: 4, all: 4, rise: 4 }, expected: { first: 4 } },
    {
      what: 'that only the total counts',
      found: { first: 1, all: 1, rise: 4 },
      expected: { first: 1, elsewhere: 3 },
    },
    { what: 'that older pages held', found: { older: 2, all: 2 }, expected: { elsewhere: 2 } },
    { what: 'that a walk found', found: { all: 6, rise: 6 }, expected: {} },
    { what: 'hidden by deletions', found: { last: 2, all: 2, rise: -5 }, expected: { last: 2 } },
    { what: 'that deletions may hide', found: { rise: -1 }, expected: { elsewhere: 0.5 } },
    { what: 'without a total', found: { last: 2, all: 2, rise: null }, expected: { last: 2 } },
  ])('counts those $what', ({ found, expected }) => {
    expect(learnPlaces(NO_PLACES, { ...NOTHING, ...found })).toEqual({ ...NO_PLACES, ...expected })
  })

  it('doubts no end for long', () => {
    const places = learnPlaces(DOUBT, { ...NOTHING, last: 3, all: 3 })

    expect([newestEnd(DOUBT, 'auto'), newestEnd(places, 'auto')]).toEqual([null, 'last'])
  })

  it('forgets: no more than twenty are remembered', () => {
    const places = learnPlaces({ first: 20, last: 0, elsewhere: 0 }, { ...NOTHING, last: 20, all: 20 })

    expect(places).toEqual({ first: 10, last: 10, elsewhere: 0 })
  })

  it('is learned again within eleven refreshes when the list turns round', () => {
    let places: Places = { first: 20, last: 0, elsewhere: 0 }
    let refreshes = 0
    for (; newestEnd(places, 'auto') !== 'last'; refreshes++)
      places = learnPlaces(places, { ...NOTHING, last: 5, all: 5 })

    expect(refreshes).toBeLessThanOrEqual(11)
  })
})

describe('the ends of a list', () => {
  it.each([
    { places: NO_PLACES, worthReading: ['first', 'last'], newest: null },
    { places: { first: 2, last: 0, elsewhere: 0 }, worthReading: ['first', 'last'], newest: null },
    { places: { first: 0, last: 2, elsewhere: 0 }, worthReading: ['last', 'first'], newest: null },
    { places: { first: 3, last: 0, elsewhere: 0 }, worthReading: ['first'], newest: 'first' },
    { places: { first: 1, last: 9, elsewhere: 0 }, worthReading: ['last'], newest: 'last' },
    { places: { first: 4, last: 16, elsewhere: 0 }, worthReading: ['last', 'first'], newest: 'last' },
    { places: { first: 5, last: 0, elsewhere: 15 }, worthReading: ['first'], newest: null },
    { places: { first: 1, last: 1, elsewhere: 18 }, worthReading: [], newest: null },
  ])('$places: read $worthReading, newest $newest', ({ places, worthReading, newest }) => {
    expect({ worthReading: endsWorthReading(places, 'auto'), newest: newestEnd(places, 'auto') }).toEqual({
      worthReading,
      newest,
    })
  })

  it('are as the configuration says, if it does', () => {
    const places = { first: 0, last: 0, elsewhere: 20 }

    expect([endsWorthReading(places, 'last'), newestEnd(places, 'last')]).toEqual([['last'], 'last'])
    expect(endsToRead({ places, bothEndsAt: null, interval: null }, 'last', 0)).toEqual(['last'])
  })

  it.each([
    { first: 20, last: 0, newest: null },
    { first: 4, last: 16, newest: null },
    { first: 3, last: 16, newest: 'last' },
  ])('are not as the configuration says where the other one has new rows: $first of them', (places) => {
    expect(newestEnd({ ...places, elsewhere: 0 }, 'last')).toBe(places.newest)
  })

  it.each([
    { newest: 'first', expected: { first: 1, last: 15, elsewhere: 2 } },
    { newest: 'last', expected: { first: 4, last: 0, elsewhere: 2 } },
    { newest: 'auto', expected: { first: 1, last: 15, elsewhere: 2 } },
  ] as const)(
    'are learned from a full walk where refreshes do not read: newest $newest',
    ({ newest, expected }) => {
      const places = { first: 1, last: 0, elsewhere: 2 }

      expect(learnFromWalk(places, newest, { first: 3, last: 15 })).toEqual(expected)
    },
  )

  it.each([
    { bothEndsAt: null, minutes: null, expected: ['last', 'first'] },
    { bothEndsAt: 5 * HOUR, minutes: 5, expected: ['last'] },
    { bothEndsAt: 4.5 * HOUR, minutes: null, expected: ['last', 'first'] },
    { bothEndsAt: 4.5 * HOUR, minutes: 5, expected: ['last', 'first'] },
    { bothEndsAt: 4.5 * HOUR, minutes: 6, expected: ['last'] },
    { bothEndsAt: 8 * HOUR, minutes: 5, expected: ['last', 'first'] },
  ])('are both read each hour, or twelfth time: last at $bothEndsAt, each $minutes minutes', (row) => {
    const { bothEndsAt, minutes, expected } = row
    const places = { first: 0, last: 20, elsewhere: 0 }
    const interval = minutes === null ? null : (minutes * HOUR) / 60

    expect(endsToRead({ places, bothEndsAt, interval }, 'auto', 5.5 * HOUR)).toEqual(expected)
  })
})
