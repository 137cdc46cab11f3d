import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { End, RefreshRules } from '../../../src/sync/refresh/ends.ts'
import { Listing } from './listing.ts'

/** `at`: the place in the list, from 0 to 1; null: where the reading is. */
interface Movement {
  kind: 'insert' | 'remove' | 'change' | 'move'
  count: number
  at: number | null
}

/** However it grows, it has no more pages. */
const MOST_PAGES = 40

/** So many requests for each page may a reading from one end take, and of some lists among a hundred thousand more. */
const MOST_A_PAGE = 3
const MOST_OF_ALL = 5

/** @param page The last one that was asked for. */
function move(list: Listing, { kind, count, at }: Movement, page: number): void {
  const place = Math.min(Math.floor(at === null ? (page - 1) * 25 : at * list.rows.length), list.rows.length)
  for (let index = 0; index < count; index++) {
    if (kind === 'insert' && list.rows.length < MOST_PAGES * 25) list.insert(place)
    if (kind === 'remove' && list.rows.length > 150) list.remove(place)
    if (kind === 'move') list.moveToEnd(place)
  }
  if (kind === 'change') list.change(place, count * 25)
}

const movement: fc.Arbitrary<Movement> = fc.record({
  kind: fc.constantFrom('insert', 'insert', 'insert', 'remove', 'change', 'move'),
  count: fc.integer({ min: 1, max: 40 }),
  at: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
})

/** A refresh in which the same happens again and again in front of its requests. */
const restless = fc.record({
  end: fc.constantFrom<End>('first', 'last'),
  newest: fc.constantFrom<RefreshRules['newest']>('auto', 'first', 'last'),
  count: fc.integer({ min: 150, max: 600 }),
  before: fc.array(movement, { maxLength: 5 }),
  during: fc.array(fc.array(movement, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 5 }),
})

type Restless = typeof restless extends fc.Arbitrary<infer R> ? R : never

/** Each way back ends at rows that did not move, and outside the page where one began before. */
const NO_PROGRESS: Restless = {
  end: 'last',
  newest: 'auto',
  count: 150,
  before: [],
  during: [
    [
      { kind: 'insert', count: 35, at: null },
      { kind: 'remove', count: 17, at: 0 },
    ],
    [{ kind: 'change', count: 2, at: null }],
    [
      { kind: 'move', count: 8, at: 0 },
      { kind: 'remove', count: 1, at: 0 },
    ],
    [{ kind: 'insert', count: 53, at: 0 }],
  ],
}

/** The same ones each time; `RUNS=5000` lives through others. */
const RUNS = process.env.RUNS ? { numRuns: Number(process.env.RUNS) } : { numRuns: 500, seed: 1 }

/** Requests for each page that a list can have, and each end that is read. */
function requestsAPage({ end, newest, count, before, during }: Restless): number {
  const list = new Listing(end, count)
  const state = list.walk()
  for (const one of before) move(list, one, 1)
  let page = 1
  const { asked } = list.refresh(state, {
    rules: { newest },
    before(request) {
      for (const one of during[request % during.length] ?? []) move(list, one, page)
    },
    spoil(answer) {
      page = answer.page
      return answer
    },
  })
  return asked.length / MOST_PAGES / (newest === 'auto' ? 2 : 1)
}

describe('a refresh of a list that moves between all answers', () => {
  it('asks a few times for each page at most', () => {
    fc.assert(
      fc.property(restless, (list) => {
        expect(requestsAPage(list)).toBeLessThanOrEqual(MOST_OF_ALL)
      }),
      RUNS,
    )
  })

  it('does not begin anew where it has come no further inside', () => {
    expect(requestsAPage(NO_PROGRESS)).toBeLessThanOrEqual(MOST_A_PAGE)
  })
})

describe('a list that loses rows between all answers', () => {
  it('is read again from where it was settled, thrice in a row, before it is left to a full walk', () => {
    const list = new Listing('first', 100)
    let state = list.walk()
    const { settledAt, freshAsOf } = state
    list.add(300)
    const refresh = () => list.refresh(state, { before: () => list.remove(0) })

    for (const unsettled of [1, 2]) {
      state = refresh().state ?? state
      expect(state).toMatchObject({ unsettled, settledAt, freshAsOf, holeSince: null })
    }
    const { outcomes, state: left } = refresh()

    expect(outcomes).toEqual(['unsettled'])
    expect(left).toMatchObject({ unsettled: 0, freshAsOf, holeSince: left?.freshness.newestAt })
  })
})
