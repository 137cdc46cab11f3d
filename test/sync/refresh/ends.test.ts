import { describe, expect, it } from 'vitest'
import type { End } from '../../../src/sync/refresh/ends.ts'
import { Listing, type Refreshing } from './listing.ts'

const ENDS = ['first', 'last'] as const

type Move = (list: Listing) => unknown

interface Case extends Omit<Refreshing, 'before'> {
  rows?: number
  /** Between the full walk and the refresh; and before the request of this number. */
  move?: Move
  during?: Record<number, Move>
  outcome?: string
}

const add =
  (count: number): Move =>
  (list) =>
    list.add(count)
const remove =
  (index: number, count = 1): Move =>
  (list) =>
    list.remove(index, count)
const pushIn: Move = (list) => list.insert(0)

const EMPTY = { items: [], total: 0, next: null, lastPage: 1 }
const noLastPage: Refreshing['spoil'] = (answer) => ({ ...answer, lastPage: null })
const noTotal: Refreshing['spoil'] = (answer) => ({ ...answer, total: null })
const SHORTER = { move: remove(0, 60) }
const LONGER = { move: add(60) }
const UNSETTLED = { outcome: 'unsettled' }

describe('the pages that a refresh asks for', () => {
  it.each<[End, what: string, asked: string, Case?]>([
    ['first', 'nothing is new', '1'],
    ['last', 'nothing is new', '20'],
    ['first', 'ten rows are new', '1 2', { move: add(10) }],
    ['last', 'ten rows are new', '20 21 20', { move: add(10) }],
    ['first', 'a hundred are', '1 2 3 4 5', { move: add(100) }],
    ['last', 'a hundred are', '20 24 23 22 21 20', { move: add(100) }],
    ['last', 'the last page was not full', '20 19', { rows: 490, move: add(5) }],
    ['last', 'it became shorter', '20 18 17', SHORTER],
    [
      'last',
      'pages past its end are not found',
      '20 1 18 17',
      { ...SHORTER, refuses: 'ORGANIZATION_NOT_FOUND' },
    ],
    ['last', 'pages past its end are refused', '20 1 18 17', { ...SHORTER, refuses: 'BAD_REQUEST' }],
    [
      'last',
      'it became longer, without a last page',
      '20 21 22 23 22 21 20',
      { ...LONGER, spoil: noLastPage },
    ],
    ['last', 'it became shorter, without a last page', '20 19 18 17', { ...SHORTER, spoil: noLastPage }],
    // The page before, and forwards again.
    [
      'first',
      'a row of a page that was read is deleted',
      '1 2 3 2 3',
      { move: add(51), during: { 3: remove(0) } },
    ],
    // Back until a known item is met.
    [
      'first',
      'more than a page of them is',
      '1 2 3 4 3 2 3 4',
      { move: add(100), during: { 4: remove(0, 30) } },
    ],
    ['first', 'nothing counts them: no step back', '1 2 3 4', { ...LONGER, spoil: noTotal }],
    // The page before holds what it pushed there.
    ['last', 'a row is put in further inside', '20 23 22 23 22 21 20', { ...LONGER, during: { 3: pushIn } }],
    [
      'last',
      'it only grows: the page before, once',
      '20 23 22 21 22 20',
      { ...LONGER, during: { 4: add(1) } },
    ],
    [
      'last',
      'a deletion pulls back what was pushed: once more',
      '16 18 17 18 17 16',
      { rows: 400, move: add(26), during: { 3: pushIn, 4: remove(0) } },
    ],
    ['last', 'only old news was pushed', '21 20', { rows: 510, move: add(10), during: { 2: pushIn } }],
    ['first', 'rows changed where they are', '1', { move: (list) => list.change(1, 300) }],
    ['first', 'its first page is empty', '1', { ...UNSETTLED, spoil: (one) => ({ ...one, ...EMPTY }) }],
    [
      'last',
      'a page of it is empty by mistake',
      '20 23 22',
      { ...UNSETTLED, ...LONGER, spoil: (one) => (one.page === 22 ? { ...one, ...EMPTY } : one) },
    ],
    [
      'first',
      'it ends before its own total',
      '1',
      { ...UNSETTLED, move: remove(20, 480), spoil: (one) => ({ ...one, total: 500 }) },
    ],
    ['first', 'it is as short as it says', '1', { move: remove(20, 480) }],
  ])(
    '%s: %s: %s',
    (end, _what, asked, { rows = 500, move, during, outcome = 'settled', ...refreshing } = {}) => {
      const list = new Listing(end, rows)
      const state = list.walk()
      move?.(list)
      const before = list.rows.map(({ id }) => id)

      const refreshed = list.refresh(state, { ...refreshing, before: (request) => during?.[request]?.(list) })

      expect([refreshed.asked.join(' '), refreshed.outcomes]).toEqual([asked, [outcome]])
      if (outcome === 'settled') expect(list.missing.filter((id) => before.includes(id))).toEqual([])
      else expect(refreshed.state).toMatchObject({ settledAt: state.settledAt, freshAsOf: state.freshAsOf })
      // One answer that lacks items makes no long list a short one, which would be walked whole.
      if (outcome === 'unsettled') expect(refreshed.state?.lastPage).toBeGreaterThanOrEqual(20)
    },
  )

  it.each(ENDS)('are those of a list by update behind its changed rows, too: %s', (end) => {
    const list = new Listing(end, 2000)
    const state = list.walk()
    list.add(3)
    for (let moved = 0; moved < 60; moved++) list.moveToEnd(end === 'first' ? 1000 : 500)

    const { outcomes } = list.refresh(state)

    expect({ outcomes, missing: list.missing }).toEqual({ outcomes: ['settled'], missing: [] })
  })

  it.each(ENDS)('are forty without a new row at most: %s', (end) => {
    const list = new Listing(end, 5000)
    const state = list.walk()
    list.change(0, 5000)

    const { asked, outcomes, state: after } = list.refresh(state)

    expect({ asked: asked.length, outcomes }).toEqual({ asked: 40, outcomes: ['hole'] })
    expect(after?.settledAt).toBeGreaterThan(state.settledAt)
    expect(after?.freshAsOf).toBe(state.freshAsOf)
  })

  it('of items without a usable key end at the end of the list: they are no news, and not old', () => {
    const list = new Listing('first', 500)

    const { asked } = list.refresh(list.walk(), {
      spoil: (answer) => ({ ...answer, items: answer.items.map((row) => ({ ...row, seen: null })) }),
    })

    expect(asked.length).toBe(20)
  })
})
