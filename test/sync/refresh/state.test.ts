import { describe, expect, it } from 'vitest'
import { endsWorthReading } from '../../../src/sync/refresh/read-ends.ts'
import {
  afterFullWalk,
  type CompleteWalk,
  type RefreshState,
  shouldWarnOfChanges,
  stateOf,
} from '../../../src/sync/refresh/state.ts'
import { withBands } from '../../../src/sync/refresh/worth.ts'

const WALK: CompleteWalk = {
  scope: 'orders',
  startedAt: 100,
  endedAt: 200,
  lastPage: 40,
  totals: { first: 990, last: 1000 },
  isSteady: true,
  rowsAdded: { first: 10, last: 1010 },
}

const FIRST = afterFullWalk(null, WALK)

const KNOWN: RefreshState = {
  ...FIRST,
  places: { first: 20, last: 0, elsewhere: 0 },
  freshness: withBands(FIRST.freshness, 40, true, 100),
}

describe('a complete full walk', () => {
  it('is what refreshes begin with: the first one settles at its end', () => {
    expect(FIRST).toMatchObject({ settledAt: 200, freshAsOf: 100, lastPage: 40, total: 1000 })
  })

  it('claims nothing until a later one, if the first one moved so much that nobody knows what it has missed', () => {
    const drifted = afterFullWalk(null, { ...WALK, isSteady: false, isDrifted: true })
    const later = afterFullWalk(drifted, { ...WALK, startedAt: 300, endedAt: 400, isDrifted: true })

    expect([FIRST.holeSince, drifted.holeSince, later.holeSince]).toEqual([null, 200, null])
  })

  it.each([
    { isSteady: true, newest: ['first', 'last'], elsewhere: false },
    { isSteady: false, newest: ['first', 'last'], elsewhere: true },
  ])(
    'leaves open whether items are new inside the list: steady $isSteady',
    ({ isSteady, newest, elsewhere }) => {
      const { places } = afterFullWalk(null, { ...WALK, isSteady })

      expect([endsWorthReading(places, 'auto'), places.elsewhere > 0]).toEqual([newest, elsewhere])
    },
  )

  it.each([
    { before: { settledAt: 250 }, expected: { settledAt: 300, total: 990 } },
    {
      before: { settledAt: 450, total: 995, rowsAdded: 12 },
      expected: { settledAt: 450, total: 995, rowsAdded: 12 },
    },
    { before: { lastPage: 4 }, expected: { lastPage: 40 } },
    { before: { freshAsOf: 420 }, expected: { freshAsOf: 420 } },
    { before: { freshAsOf: 250 }, expected: { freshAsOf: 300 } },
    { before: { holeSince: 290, holes: 2 }, expected: { holeSince: null, holes: 0 } },
    { before: { holeSince: 310, holes: 2 }, expected: { holeSince: 310, holes: 2 } },
  ])('moves $before to $expected', ({ before, expected }) => {
    const walk = { ...WALK, startedAt: 300, endedAt: 400 }

    expect(afterFullWalk({ ...KNOWN, ...before }, walk)).toEqual({
      ...KNOWN,
      settledAt: 300,
      total: 990,
      freshAsOf: 300,
      rowsAdded: 10,
      ...expected,
    })
  })

  it('of another path or other filters begins from nothing', () => {
    expect(stateOf(KNOWN, 'orders')).toBe(KNOWN)
    expect(stateOf(KNOWN, 'orders, open ones')).toBeNull()
    expect(afterFullWalk(KNOWN, { ...WALK, scope: 'other' })).toEqual({ ...FIRST, scope: 'other' })
  })
})

describe('between refreshes', () => {
  it.each([
    { holes: 1, expected: false },
    { holes: 2, expected: true },
  ])('warns after $holes holes in a row: $expected', ({ holes, expected }) => {
    expect(shouldWarnOfChanges({ ...KNOWN, holes })).toBe(expected)
  })

  it('is plain JSON', () => {
    expect(JSON.parse(JSON.stringify(KNOWN))).toEqual(KNOWN)
  })
})
