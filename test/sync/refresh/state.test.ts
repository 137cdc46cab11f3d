import { describe, expect, it } from 'vitest'
import {
  afterFullWalk,
  type CompleteWalk,
  endsWorthReading,
  newestEnd,
  type NewsPlaces,
  type RefreshState,
  stateOf,
} from '../../../src/sync/refresh/state.ts'
import { withBands } from '../../../src/sync/refresh/worth.ts'
import { fullWalk } from '../../helpers/full-walk.ts'
import { Listing, type Refreshing } from './listing.ts'

const AUTO = { newest: 'auto' } as const
const placesOf = (first: number, last: number, elsewhere: number): NewsPlaces => ({ first, last, elsewhere })
const LEARNED = { places: placesOf(20, 0, 0) }

function synced(end: 'first' | 'last', count = 500) {
  const list = new Listing(end, count)
  let state = list.walk()
  /** Refreshes it, and keeps the state. */
  const refresh = (how: Refreshing = {}, more: Partial<RefreshState> = {}) => {
    const refreshed = list.refresh({ ...state, ...more }, how)
    state = refreshed.state ?? state
    return { ...refreshed, state }
  }
  return { list, state, refresh }
}

describe('the ends of a list', () => {
  it.each([
    [placesOf(0, 0, 0), ['first', 'last'], null],
    [placesOf(0, 2, 0), ['last', 'first'], null],
    [placesOf(3, 0, 0), ['first'], 'first'],
    [placesOf(4, 16, 0), ['last', 'first'], 'last'],
    [placesOf(5, 0, 15), ['first'], null],
    [placesOf(1, 1, 18), [], null],
  ])('where new items were found at %j: read %j, newest %s', (places, worthReading, newest) => {
    expect([endsWorthReading(places, 'auto'), newestEnd(places, 'auto')]).toEqual([worthReading, newest])
    expect([endsWorthReading(places, 'last'), newestEnd(places, 'last')]).toEqual([['last'], 'last'])
  })

  it.each(['first', 'last'] as const)('are both read until it is learned where new rows are: %s', (end) => {
    const { list, refresh } = synced(end)
    list.add(2)

    const { state, outcomes } = refresh(AUTO)

    expect(outcomes).toEqual(['settled', 'settled'])
    expect(state.places).toEqual({ ...placesOf(0, 0, 0), [end]: 2 })
    expect(state.freshAsOf).toBe(state.newestAt)
    expect(list.missing).toEqual([])
  })

  it.each([
    ['the list is read whole', 'remove 5 495, add 200'],
    ['known rows stand before them', 'insert 10 3'],
  ])('are not learned by new rows at the other one, where %s', (_what, moves) => {
    const { list, refresh } = synced('last')
    list.happen(moves)

    expect(refresh(AUTO).state.places).toEqual(placesOf(0, 0, 0))
    expect(list.missing).toEqual([])
  })

  it('are learned anew as new items come to the other one: what was found before counts less and less', () => {
    const { list, refresh } = synced('last')
    list.add(30)

    expect(refresh(AUTO, LEARNED).state.places).toEqual(placesOf(8, 12, 0))
  })

  it('are read once an hour where new items appear anywhere, and nothing is claimed', () => {
    const { list, state, refresh } = synced('first')
    list.insert(200, 10)

    const first = refresh(AUTO).state
    const second = refresh(AUTO)

    expect(first).toMatchObject({ places: placesOf(0, 0, 10), freshAsOf: state.freshAsOf })
    expect(second.asked).toEqual([])
    expect(second.state.newestAt).toBeGreaterThan(first.newestAt)
  })

  const [minutes, hour] = [300_000, 3_600_000]

  it.each<[read: string, when: string, moves: string, since: number, interval: number, rejected?: number]>([
    ['1', 'one of both was read lately', '', 0, minutes],
    ['1 20', 'that was an hour ago', '', hour, minutes],
    ['1', 'and fewer than twelve refreshes, since many lists share', '', hour, hour],
    ['1 21', 'the total rose by more than was found there', 'insert 500 4', 0, minutes],
    ['1', 'so many items have no usable key', 'insert 500 4', 0, minutes, 4],
  ])('that are read are %s where %s', (ends, _when, moves, since, interval, rejected = 0) => {
    const { list, refresh } = synced('first')
    list.happen(moves)

    const spoil: Refreshing['spoil'] = (answer) => ({ ...answer, rejected })
    const known = { ...LEARNED, bothEndsAt: list.clock - since, interval }
    const { asked, state } = refresh({ ...AUTO, spoil }, known)

    expect(asked.slice(0, 2).join(' ')).toBe(ends)
    expect(state.places.last > 3).toBe(ends === '1 21')
    expect(list.missing).toHaveLength(rejected)
  })
})

describe('what was not read', () => {
  it.each<[why: string, moves: string, Refreshing]>([
    ['deletions may hide new rows elsewhere', 'remove 200', AUTO],
    ['the list names no total any more', 'add 60', { spoil: (answer) => ({ ...answer, total: null }) }],
  ])('is not claimed, as long as %s', (_why, moves, how) => {
    const { list, state, refresh } = synced('first')
    list.happen(moves)

    const after = refresh(how)

    expect(new Set(after.outcomes)).toEqual(new Set(['settled']))
    expect(after.state.freshAsOf).toBe(state.freshAsOf)
  })

  it('keeps the claim where it is until a full walk that began later is complete', () => {
    const { list, state, refresh } = synced('first', 5000)
    list.change(0, 5000)
    const hole = refresh().state
    const behind = refresh().state
    const walked = list.walk(behind)
    const after = list.refresh(walked).state

    expect(hole.holeSince).toBe(hole.newestAt)
    expect(behind).toMatchObject({ freshAsOf: state.freshAsOf, holeSince: hole.newestAt })
    expect(walked).toMatchObject({ holeSince: null, freshAsOf: walked.settledAt })
    expect(after?.freshAsOf).toBe(after?.newestAt)
  })

  it('at an end that is read once an hour only does not count', () => {
    const { list, refresh } = synced('first', 3000)
    list.change(1500, 1500)

    const { outcomes, state } = refresh(AUTO, LEARNED)

    expect(outcomes).toEqual(['settled', 'hole'])
    expect(state).toMatchObject({ holeSince: null, freshAsOf: state.newestAt })
  })

  it.each([
    ['first', 'remove 0'],
    ['last', 'insert 0'],
  ] as const)(
    'in a list that moves between all answers is tried again, thrice, and then left to a walk: %s',
    (end, move) => {
      const { list, state, refresh } = synced(end, 100)
      const { settledAt, freshAsOf } = state
      list.add(300)
      const all = [1, 2, 3].map(() => refresh({ before: () => list.happen(move) }))
      const [, second, third] = all.map((one) => one.state)

      // It is not followed for ever: a few answers for each page that was read.
      expect(Math.max(...all.map(({ asked }) => asked.length))).toBeLessThan(20)
      expect(second).toMatchObject({ unsettled: 2, settledAt, freshAsOf, holeSince: null })
      expect(third).toMatchObject({ unsettled: 0, freshAsOf, holeSince: third?.newestAt })
    },
  )
})

const WALK = fullWalk({ totals: { first: 990, last: 1000 }, rowsAdded: { first: 10, last: 1010 } })
const FIRST = afterFullWalk(null, WALK)
const KNOWN: RefreshState = withBands({ ...FIRST, places: placesOf(20, 0, 0) }, 'first', 100)

describe('a complete full walk', () => {
  it.each<[Partial<CompleteWalk>, Partial<RefreshState>]>([
    [{}, { settledAt: 200, freshAsOf: 100, holeSince: null, lastPage: 40, total: 1000 }],
    [{}, { places: placesOf(0, 0, 0) }],
    [{ coverage: 'repaired' }, { holeSince: null, places: placesOf(0, 0, 0.5) }],
    [{ grewAt: 150 }, { settledAt: 149 }],
    // Nobody knows what it has missed: nothing is claimed until a later one.
    [{ coverage: 'drifted' }, { holeSince: 200 }],
    [{ totals: { first: null, last: null } }, { holeSince: 200 }],
  ])('is what refreshes begin with: %j: %j', (walk, expected) => {
    expect(afterFullWalk(null, { ...WALK, ...walk })).toMatchObject(expected)
  })

  it('of a short list takes the place of a refresh, and tells how often its rows come', () => {
    const short = { ...WALK, lastPage: 4, rowsAdded: { first: 10, last: 10 } }
    const quiet = afterFullWalk(FIRST, { ...short, startedAt: 60_100 })
    const busy = afterFullWalk(FIRST, { ...short, startedAt: 60_100, rowsAdded: { first: 10, last: 50 } })

    expect(quiet).toMatchObject({ newestAt: 60_100, interval: 60_000 })
    expect(busy.news).toBeGreaterThan(2 * quiet.news)
    const long = afterFullWalk(FIRST, { ...WALK, startedAt: 60_100 })
    expect(long).toMatchObject({ newestAt: 100, interval: null })
  })

  const LATER = { settledAt: 450, total: 995, rowsAdded: 12 }

  it.each<[Partial<RefreshState>, Partial<RefreshState>]>([
    [LATER, LATER],
    [{ lastPage: 4 }, { lastPage: 40 }],
    [{ freshAsOf: 420 }, { freshAsOf: 420 }],
    [{ holeSince: 290 }, { holeSince: null }],
    [{ holeSince: 310 }, { holeSince: 310 }],
  ])('moves %j to %j', (before, expected) => {
    const moved = { settledAt: 300, total: 990, freshAsOf: 300, rowsAdded: 10 }
    const drifted = { ...WALK, startedAt: 300, endedAt: 400, coverage: 'drifted' } as const
    const after = afterFullWalk({ ...KNOWN, ...before }, drifted)

    expect(after).toEqual({ ...KNOWN, ...moved, ...expected })
  })
})

describe('what was saved', () => {
  const saved: unknown = JSON.parse(JSON.stringify(KNOWN))
  const ahead = { ...KNOWN, freshAsOf: 900, holeSince: 900 }
  const withdrawn = { ...KNOWN, freshAsOf: 0, holeSince: 300 }

  it.each([
    ['is the same again', saved, 'orders', 200, KNOWN],
    ['of other filters is nothing', saved, 'orders, open ones', 200, null],
    ['by another version is nothing', { ...KNOWN, bands: undefined }, 'orders', 200, null],
    ['before the first walk is nothing', null, 'orders', 200, null],
    ['by a clock that was ahead claims nothing of the time to come', ahead, 'orders', 300, withdrawn],
  ])('%s', (_what, text, scope, now, expected) => {
    expect(stateOf(text, scope, now)).toEqual(expected)
  })
})
