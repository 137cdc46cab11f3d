import { describe, expect, it } from 'vitest'
import type { End } from '../../../src/sync/refresh/ends.ts'
import { Listing, type Refreshing } from './listing.ts'

const ENDS = ['first', 'last'] as const

interface Case extends Omit<Refreshing, 'before'> {
  what: string
  end: End
  rows?: number
  /** Between the full walk and the refresh; and before the request of this number. */
  move?: (list: Listing) => unknown
  during?: (list: Listing, request: number) => unknown
  asked: number[]
  outcome?: string
}

const EMPTY = { items: [], total: 0, next: null, lastPage: 1 }
const noLastPage: Refreshing['spoil'] = (answer) => ({ ...answer, lastPage: null })

describe('the pages that a refresh asks for', () => {
  it.each<Case>([
    { what: 'nothing is new', end: 'first', asked: [1] },
    { what: 'nothing is new', end: 'last', asked: [20] },
    { what: 'ten rows are new', end: 'first', move: (list) => list.add(10), asked: [1, 2] },
    { what: 'ten rows are new', end: 'last', move: (list) => list.add(10), asked: [20, 21, 20] },
    { what: 'a hundred are', end: 'first', move: (list) => list.add(100), asked: [1, 2, 3, 4, 5] },
    { what: 'a hundred are', end: 'last', move: (list) => list.add(100), asked: [20, 24, 23, 22, 21, 20] },
    {
      what: 'the last page was not full',
      end: 'last',
      rows: 490,
      move: (list) => list.add(5),
      asked: [20, 19],
    },
    { what: 'it became shorter', end: 'last', move: (list) => list.remove(0, 60), asked: [20, 18, 17] },
    {
      what: 'no answer names the last page, and it became longer',
      end: 'last',
      move: (list) => list.add(60),
      spoil: noLastPage,
      asked: [20, 21, 22, 23, 22, 21, 20],
    },
    {
      what: 'no answer names the last page, and it became shorter',
      end: 'last',
      move: (list) => list.remove(0, 60),
      spoil: noLastPage,
      asked: [20, 19, 18, 17],
    },
    {
      what: 'a row of a page that was read is deleted: the page before, and forwards again',
      end: 'first',
      move: (list) => list.add(51),
      during: (list, request) => request === 3 && list.remove(0),
      asked: [1, 2, 3, 2, 3],
    },
    {
      what: 'more than a page of them is: back until a known item is met',
      end: 'first',
      move: (list) => list.add(100),
      during: (list, request) => request === 4 && list.remove(0, 30),
      asked: [1, 2, 3, 4, 3, 2, 3, 4],
    },
    {
      what: 'nothing counts them: no step back',
      end: 'first',
      move: (list) => list.add(60),
      spoil: (answer) => ({ ...answer, total: null }),
      asked: [1, 2, 3, 4],
    },
    {
      what: 'a row is put in further inside: the page before, which holds what it pushed there',
      end: 'last',
      move: (list) => list.add(60),
      during: (list, request) => request === 3 && list.insert(0),
      asked: [20, 23, 22, 23, 22, 21, 20],
    },
    {
      what: 'it only grows: the page before, once',
      end: 'last',
      move: (list) => list.add(60),
      during: (list, request) => request === 4 && list.add(1),
      asked: [20, 23, 22, 21, 22, 20],
    },
    {
      what: 'a deletion pulls back what was pushed: once more',
      end: 'last',
      rows: 400,
      move: (list) => list.add(26),
      during(list, request) {
        if (request === 3) list.insert(0)
        if (request === 4) list.remove(0)
      },
      asked: [16, 18, 17, 18, 17, 16],
    },
    {
      what: 'only old news was pushed: no further request',
      end: 'last',
      rows: 510,
      move: (list) => list.add(10),
      during: (list, request) => request === 2 && list.insert(0),
      asked: [21, 20],
    },
    { what: 'rows changed where they are', end: 'first', move: (list) => list.change(1, 300), asked: [1] },
    {
      what: 'its first page is empty',
      end: 'first',
      spoil: (one) => ({ ...one, ...EMPTY }),
      asked: [1],
      outcome: 'unsettled',
    },
    {
      what: 'a page of it is empty by mistake',
      end: 'last',
      move: (list) => list.add(60),
      spoil: (one) => (one.page === 22 ? { ...one, ...EMPTY } : one),
      asked: [20, 23, 22],
      outcome: 'unsettled',
    },
    {
      what: 'it ends before its own total',
      end: 'first',
      move: (list) => list.remove(20, 480),
      spoil: (one) => ({ ...one, total: 500 }),
      asked: [1],
      outcome: 'unsettled',
    },
    { what: 'it is as short as it says', end: 'first', move: (list) => list.remove(20, 480), asked: [1] },
  ])('$end: $what', ({ end, rows = 500, move, during, asked, outcome = 'settled', ...refreshing }) => {
    const list = new Listing(end, rows)
    const state = list.walk()
    move?.(list)
    const before = list.rows.map(({ id }) => id)

    const refreshed = list.refresh(state, { ...refreshing, before: (request) => during?.(list, request) })

    expect({ asked: refreshed.asked, outcomes: refreshed.outcomes }).toEqual({ asked, outcomes: [outcome] })
    if (outcome === 'settled') expect(list.missing.filter((id) => before.includes(id))).toEqual([])
    else expect(refreshed.state).toMatchObject({ settledAt: state.settledAt, freshAsOf: state.freshAsOf })
    // One answer that lacks items makes no long list a short one, which would be walked whole.
    if (outcome === 'unsettled') expect(refreshed.state?.lastPage).toBeGreaterThanOrEqual(20)
  })

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
