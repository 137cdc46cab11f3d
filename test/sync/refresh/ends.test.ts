import { describe, expect, it } from 'vitest'
import type { End } from '../../../src/sync/refresh/ends.ts'
import { Listing, type Refreshing } from './listing.ts'

type Spoil = NonNullable<Refreshing['spoil']>

const empty =
  (page: number): Spoil =>
  (one) =>
    one.page === page ? { ...one, items: [], total: 0, next: null, lastPage: 1 } : one
const noLastPage: Spoil = (answer) => ({ ...answer, lastPage: null })
/** A next page is named behind each full one. */
const nextOfFull: Spoil = (one) => ({
  ...one,
  lastPage: null,
  next: one.items.length === 25 ? one.page + 1 : null,
})
const noTotal: Spoil = (answer) => ({ ...answer, total: null })
const keyless: Spoil = (one) => ({ ...one, items: one.items.map((row) => ({ ...row, seen: null })) })
const NOT_FOUND = 'ORGANIZATION_NOT_FOUND'
const says500: Spoil = (answer) => ({ ...answer, total: 500 })

describe('the pages that a refresh asks for', () => {
  // `moves`: since the full walk; or `at` a request, just before it. A reading that is not settled says so behind its pages.
  it.each<[End, moves: string, asked: string, what: string, (Refreshing & { rows?: number })?]>([
    ['last', '', '20', 'nothing is new'],
    ['first', 'add 100', '1 2 3 4 5', 'a hundred are'],
    ['last', 'add 100', '20 24 23 22 21 20', 'a hundred are'],
    ['last', 'add 5', '20 19', 'the last page was not full', { rows: 490 }],
    ['first', 'change 1 300', '1', 'rows changed where they are'],
    ['first', 'add 3, move 300 60', '1 2 3 4', 'behind changed rows of a list by update, too'],
    ['last', 'add 3, move 100 60', '20 21 20 19 18 17', 'behind changed rows of a list by update, too'],
    ['first', '', '1 2 3 4', 'rows without a key are neither old nor new', { rows: 100, spoil: keyless }],
    // Where the list ends.
    ['last', 'remove 0 60', '20 18 17', 'it became shorter'],
    ['last', 'remove 0 60', '20 1 18 17', 'and what is past its end is not found', { refuses: NOT_FOUND }],
    ['last', 'remove 0 60', '20 1 18 17', 'and what is past its end is refused', { refuses: 'BAD_REQUEST' }],
    ['last', 'remove 0 60', '20 19 18 17', 'shorter, without a last page', { spoil: noLastPage }],
    ['last', 'remove 0 25', '20 19', 'and names a page behind its last, full one', { spoil: nextOfFull }],
    ['last', 'add 60', '20 21 22 23 22 21 20', 'longer, without a last page', { spoil: noLastPage }],
    ['last', 'add 30 at each', '20 22 23 24 25 24 25 23 24 22 23 21 22 20 21', 'a page more each time'],
    // The page before, and forwards again; back until a known item is met.
    ['first', 'add 51, remove 0 at 3', '1 2 3 2 3', 'a row of a page that was read is deleted'],
    ['first', 'add 100, remove 0 30 at 4', '1 2 3 4 3 2 3 4', 'more than a page of them is'],
    ['first', 'add 60', '1 2 3 4', 'nothing counts them: no step back', { spoil: noTotal }],
    // The page before holds what it pushed there.
    ['last', 'add 60, insert 0 at 3', '20 23 22 23 22 21 20', 'a row is put in further inside'],
    ['last', 'add 60, add 1 at 4', '20 23 22 21 22 20', 'it only grows: the page before, once'],
    ['last', 'add 26, insert 0 at 3, remove 0 at 4', '21 23 22 23 22 21', 'it is pulled back', { rows: 525 }],
    ['last', 'add 10, insert 0 at 2', '21 20', 'only old news was pushed', { rows: 510 }],
    // Answers that lack items.
    ['first', '', '1 unsettled', 'its first page is empty', { spoil: empty(1) }],
    ['last', 'add 60', '20 23 22 unsettled', 'a page of it is empty by mistake', { spoil: empty(22) }],
    ['first', 'remove 20 480', '1 unsettled', 'it ends before its own total', { spoil: says500 }],
    ['first', 'remove 20 480', '1', 'it is as short as it says'],
  ])('%s: %s: %s: %s', (end, moves, pages, _what, { rows = 500, ...refreshing } = {}) => {
    const list = new Listing(end, rows)
    const state = list.walk()
    list.happen(moves)
    const standing = list.rows.map(({ id }) => id)
    const before = (request: number) => list.happen(moves, request)

    const { asked, outcomes, state: after } = list.refresh(state, { ...refreshing, before })

    expect([...asked, ...outcomes].join(' ').replace(' settled', '')).toBe(pages)
    if (outcomes[0] === 'settled') expect(list.missing.filter((id) => standing.includes(id))).toEqual([])
    else {
      expect(after).toMatchObject({ settledAt: state.settledAt, freshAsOf: state.freshAsOf })
      // One answer that lacks items makes no long list a short one, which would be walked whole.
      expect(after?.lastPage).toBeGreaterThanOrEqual(20)
    }
  })

  it('are asked for from the first one on once: if the last one is refused again, that is the error', () => {
    const list = new Listing('last', 500)
    const state = list.walk()

    expect(() => list.refresh(state, { refuses: NOT_FOUND, before: () => list.remove(0, 60) })).toThrow()
  })

  it.each(['first', 'last'] as const)('are forty without a new row at most: %s', (end) => {
    const list = new Listing(end, 5000)
    const state = list.walk()
    list.change(0, 5000)

    const { asked, outcomes, state: after } = list.refresh(state)

    expect({ asked: asked.length, outcomes }).toEqual({ asked: 40, outcomes: ['hole'] })
    expect(after?.settledAt).toBeGreaterThan(state.settledAt)
    expect(after?.freshAsOf).toBe(state.freshAsOf)
  })
})
