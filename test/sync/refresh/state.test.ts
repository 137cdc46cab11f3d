import { describe, expect, it } from 'vitest'
import {
  afterFullWalk,
  type CompleteWalk,
  endsWorthReading,
  newestEnd,
  type Places,
  type RefreshState,
  stateOf,
} from '../../../src/sync/refresh/state.ts'
import { withBands } from '../../../src/sync/refresh/worth.ts'
import { Listing } from './listing.ts'

const AUTO = { newest: 'auto' } as const
const placesOf = (first: number, last: number, elsewhere: number): Places => ({ first, last, elsewhere })

function synced(end: 'first' | 'last', count = 500) {
  const list = new Listing(end, count)
  return { list, state: list.walk() }
}

describe('the ends of a list', () => {
  it.each([
    [placesOf(0, 0, 0), ['first', 'last'], null],
    [placesOf(2, 0, 0), ['first', 'last'], null],
    [placesOf(0, 2, 0), ['last', 'first'], null],
    [placesOf(3, 0, 0), ['first'], 'first'],
    [placesOf(1, 9, 0), ['last'], 'last'],
    [placesOf(4, 16, 0), ['last', 'first'], 'last'],
    [placesOf(5, 0, 15), ['first'], null],
    [placesOf(1, 1, 18), [], null],
  ])('where new items were found at %j: read %j, newest %s', (places, worthReading, newest) => {
    expect([endsWorthReading(places, 'auto'), newestEnd(places, 'auto')]).toEqual([worthReading, newest])
    expect([endsWorthReading(places, 'last'), newestEnd(places, 'last')]).toEqual([['last'], 'last'])
  })

  it.each(['first', 'last'] as const)('are both read until it is learned where new rows are: %s', (end) => {
    const { list, state } = synced(end)
    list.add(2)

    const { state: after, outcomes } = list.refresh(state, { rules: AUTO })

    expect(outcomes).toEqual(['settled', 'settled'])
    expect(after?.places).toEqual({ ...placesOf(0, 0, 0), [end]: 2 })
    expect(after?.freshAsOf).toBe(after?.freshness.newestAt)
    expect(list.missing).toEqual([])
  })

  it.each(['first', 'last'] as const)('are not learned from rows that come at the other one: %s', (end) => {
    const { list, state } = synced(end)
    list.remove(end === 'last' ? 5 : 0, 495)
    list.add(200)

    const { state: after } = list.refresh(state, { rules: AUTO })

    expect(after?.places[end === 'last' ? 'first' : 'last']).toBe(0)
    expect(list.missing).toEqual([])
  })

  it('are read once an hour where new items appear anywhere, and nothing is claimed', () => {
    const { list, state } = synced('first')
    for (let index = 0; index < 10; index++) list.insert(200 + index)
    const first = list.refresh(state, { rules: AUTO }).state ?? state

    const second = list.refresh(first, { rules: AUTO })

    expect(first).toMatchObject({ places: placesOf(0, 0, 10), freshAsOf: state.freshAsOf })
    expect(second.asked).toEqual([])
    expect(second.state?.freshness.newestAt).toBeGreaterThan(first.freshness.newestAt)
  })

  it('are both read in the same refresh where the total rose by more than was found', () => {
    const { list, state } = synced('last')
    list.add(4)

    const { asked, state: after } = list.refresh(
      { ...state, places: placesOf(20, 0, 0), bothEndsAt: list.clock },
      { rules: AUTO },
    )

    expect(asked.slice(0, 2)).toEqual([1, 21])
    expect(after?.places.last).toBeGreaterThan(3)
    expect(list.missing).toEqual([])
  })
})

describe('a refresh that is killed', () => {
  it('leaves no gap, nor does an interrupted walk: the next one reads through what they wrote', () => {
    const { list, state } = synced('first')
    list.add(120)
    list.refresh(state, { before: (request) => (request === 3 ? 'killed' : null) })
    list.add(30)
    list.refresh(state, { before: (request) => (request === 2 ? 'killed' : null) })
    list.add(60)
    list.read(1)
    list.read(2)

    const { outcomes } = list.refresh(state)

    expect({ outcomes, missing: list.missing }).toEqual({ outcomes: ['settled'], missing: [] })
  })
})

describe('what was not read', () => {
  it('keeps the claim where it is until a full walk that began later is complete', () => {
    const { list, state } = synced('first', 5000)
    list.change(0, 5000)
    const hole = list.refresh(state).state ?? state
    const behind = list.refresh(hole).state ?? hole
    const walked = list.walk(behind)
    const after = list.refresh(walked).state ?? walked

    expect(hole.holeSince).toBe(hole.freshness.newestAt)
    expect(behind).toMatchObject({ freshAsOf: state.freshAsOf, holeSince: hole.freshness.newestAt })
    expect(walked).toMatchObject({ holeSince: null, freshAsOf: walked.settledAt })
    expect(after.freshAsOf).toBe(after.freshness.newestAt)
  })

  it('at an end that is read once an hour only does not count', () => {
    const { list, state } = synced('first', 3000)
    list.change(1500, 1500)

    const { outcomes, state: after } = list.refresh({ ...state, places: placesOf(20, 0, 0) }, { rules: AUTO })

    expect(outcomes).toEqual(['settled', 'hole'])
    expect(after).toMatchObject({ holeSince: null, freshAsOf: after?.freshness.newestAt })
  })

  it('in a list that loses rows between all answers is tried again, thrice in a row, and then left to a walk', () => {
    const { list, state: first } = synced('first', 100)
    let state = first
    list.add(300)
    const refresh = () => list.refresh(state, { before: () => list.remove(0) })

    for (const unsettled of [1, 2]) {
      state = refresh().state ?? state
      const { settledAt, freshAsOf } = first
      expect(state).toMatchObject({ unsettled, settledAt, freshAsOf, holeSince: null })
    }
    const { outcomes, state: left } = refresh()

    expect(outcomes).toEqual(['unsettled'])
    const { freshAsOf } = first
    expect(left).toMatchObject({ unsettled: 0, freshAsOf, holeSince: left?.freshness.newestAt })
  })
})

/** Rows that come and change at the newest end, a minute, as a refresh knows them after this. */
function newsAfter(move: (list: Listing) => unknown): number {
  const { list, state } = synced('first')
  move(list)
  return list.refresh(state).state?.freshness.news ?? 0
}

it('a refresh learns from rows that came how often it is worth while, and from changed ones by a sixteenth', () => {
  const none = newsAfter((list) => list)

  const learned = newsAfter((list) => list.change(0, 16)) - none
  expect(learned).toBeGreaterThan(0)
  expect((newsAfter((list) => list.add(2)) - none) / learned).toBeCloseTo(2)
})

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
  places: placesOf(20, 0, 0),
  freshness: withBands(FIRST.freshness, 40, true, 100),
}

describe('a complete full walk', () => {
  it('is what refreshes begin with: the first one settles at its end', () => {
    expect(FIRST).toMatchObject({ settledAt: 200, freshAsOf: 100, lastPage: 40, total: 1000 })
    expect(FIRST.places.elsewhere).toBe(0)
    expect(afterFullWalk(null, { ...WALK, isSteady: false }).places.elsewhere).toBeGreaterThan(0)
    expect(JSON.parse(JSON.stringify(KNOWN))).toEqual(KNOWN)
  })

  it('claims nothing until a later one, if the first one moved so much that nobody knows what it has missed', () => {
    const drifted = afterFullWalk(null, { ...WALK, isSteady: false, isDrifted: true })
    const later = afterFullWalk(drifted, { ...WALK, startedAt: 300, endedAt: 400, isDrifted: true })

    expect([FIRST.holeSince, drifted.holeSince, later.holeSince]).toEqual([null, 200, null])
  })

  it.each([
    { before: { settledAt: 250 }, expected: { settledAt: 300, total: 990 } },
    {
      before: { settledAt: 450, total: 995, rowsAdded: 12 },
      expected: { settledAt: 450, total: 995, rowsAdded: 12 },
    },
    { before: { lastPage: 4 }, expected: { lastPage: 40 } },
    { before: { freshAsOf: 420 }, expected: { freshAsOf: 420 } },
    { before: { freshAsOf: 250 }, expected: { freshAsOf: 300 } },
    { before: { holeSince: 290 }, expected: { holeSince: null } },
    { before: { holeSince: 310 }, expected: { holeSince: 310 } },
  ])('moves $before to $expected', ({ before, expected }) => {
    const moved = { settledAt: 300, total: 990, freshAsOf: 300, rowsAdded: 10 }

    expect(afterFullWalk({ ...KNOWN, ...before }, { ...WALK, startedAt: 300, endedAt: 400 })).toEqual({
      ...KNOWN,
      ...moved,
      ...expected,
    })
  })

  it('of another path or other filters begins from nothing', () => {
    expect(stateOf(KNOWN, 'orders')).toBe(KNOWN)
    expect(stateOf(KNOWN, 'orders, open ones')).toBeNull()
    expect(afterFullWalk(KNOWN, { ...WALK, scope: 'other' })).toEqual({ ...FIRST, scope: 'other' })
  })
})
