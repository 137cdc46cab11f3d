import { describe, expect, it } from 'vitest'
import { endsWorthReading, NO_PLACES, newestEnd } from '../../../src/sync/refresh/read-ends.ts'

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
  })
})
