import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import { advance } from '../../../src/sync/coverage/advance.ts'
import { forwardTo } from '../../../src/sync/coverage/observe.ts'
import {
  type CoverageState,
  nextPass,
  type Overlap,
  startCheckpoint,
  type WalkRules,
} from '../../../src/sync/coverage/state.ts'
import type { PageMatch } from '../../../src/sync/seen.ts'
import type { Checkpoint, Page } from '../../../src/sync/types.ts'
import { pageOf } from '../../helpers/pages.ts'

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }
const FRESH = startCheckpoint(1).state

/** A checkpoint that asks for this page next, in list order. */
function reading(page: number, state: Partial<CoverageState> = {}): Checkpoint {
  return { pass: 1, nextPage: page, ask: forwardTo(page), state: { ...FRESH, ...state } }
}

/** Page 2 of 4, with 3 of 12 items. */
function answer(changed: Partial<Page> = {}): Page {
  return pageOf(['{"id":4}', '{"id":5}', '{"id":6}'], {
    number: 2,
    next: 3,
    total: 12,
    lastPage: 4,
    ...changed,
  })
}

/** Three new items in the second answer. */
function match(changed: Partial<PageMatch> = {}): PageMatch {
  return {
    ordinal: 1,
    pass: 1,
    why: 'forward',
    items: answer().items.map((item) => ({ item, id: item.text, reject: '' })),
    newToWalk: 3,
    newToPass: 3,
    previous: [null, null, null],
    positions: [0, 1, 2].map((position) => ({ segment: 2, position })),
    known: null,
    ...changed,
  }
}

/** The state after page 1. */
const BEGUN: Partial<CoverageState> = {
  firstTotal: 12,
  passTotal: 12,
  firstLastPage: 4,
  lastPage: 4,
  perPage: 3,
  passAnswers: 1,
  passDistinct: 3,
  frontier: { page: 1, place: { segment: 1, position: 2 }, index: 2, total: 12 },
  recent: [1],
  firstSegment: 1,
}
const KNOWN = { segment: 1, position: 2 }
const NOTHING_NEW = match({ newToWalk: 0, newToPass: 0, previous: [], positions: [] })
const ONE_AGAIN = match({ newToPass: 2, previous: [KNOWN, null, null] })

describe('an answer to forward', () => {
  it.each<[string, Page, PageMatch, Partial<CoverageState>]>([
    [
      'counts items',
      answer(),
      match(),
      { passAnswers: 2, passDistinct: 6, passMoved: false, unexplained: 0 },
    ],
    [
      'explains a repeated item by a rise of the total',
      answer({ total: 13 }),
      ONE_AGAIN,
      { passRepeated: 1, passMoved: true, totalChanged: true, unexplained: 0 },
    ],
    [
      'counts an item from far behind as relocated',
      answer({ number: 3, next: 4 }),
      match({ newToPass: 2, previous: [{ segment: 0, position: 0 }, null, null] }),
      { relocated: 1, unexplained: 0, passMoved: true },
    ],
    [
      'counts no repeat for an item found earlier beyond the frontier',
      answer(),
      match({ previous: [{ segment: 1, position: 2.5 }, null, null] }),
      { passRepeated: 0, unexplained: 0, passMoved: false },
    ],
    ['notices a missing total', answer({ total: null }), match(), { counted: false, totalChanged: false }],
    [
      'goes on',
      answer(),
      match(),
      { frontier: { page: 2, place: { segment: 2, position: 2 }, index: 5, total: 12 } },
    ],
  ])('%s', (_title, page, seen, expected) => {
    const next = advance(RULES, reading(page.number, BEGUN), page, seen)

    expect(next.state).toMatchObject(expected)
    expect(next).toMatchObject({ pass: 1, nextPage: page.next, ask: { why: 'forward', page: page.next } })
  })

  it.each([
    { repeats: 0, rise: 0, before: 0, unexplained: 3, carried: 0 },
    { repeats: 1, rise: 0, before: 0, unexplained: 4, carried: 1 },
    { repeats: 2, rise: 1, before: 0, unexplained: 4, carried: 1 },
    { repeats: 1, rise: 1, before: 0, unexplained: 3, carried: 0 },
    { repeats: 0, rise: 1, before: 1, unexplained: 2, carried: 0 },
    { repeats: 0, rise: 2, before: 1, unexplained: 2, carried: 0 },
    { repeats: 1, rise: 2, before: 1, unexplained: 2, carried: 0 },
    { repeats: 1, rise: 1, before: 1, unexplained: 3, carried: 0 },
    { repeats: 1, rise: 0, before: -1, unexplained: 3, carried: 0 },
    { repeats: 2, rise: 0, before: -1, unexplained: 4, carried: 1 },
  ])('counts repeats that no rise explains: %j', ({ repeats, rise, before, ...expected }) => {
    const state = { ...BEGUN, carried: before, unexplained: 3 }
    const previous = [0, 1, 2].map((index) => (index < repeats ? KNOWN : null))
    const seen = match({ newToPass: 3 - repeats, previous })
    const { unexplained, carried } = advance(
      RULES,
      reading(2, state),
      answer({ total: 12 + rise }),
      seen,
    ).state

    expect({ unexplained, carried }).toEqual(expected)
  })

  it('explains repeats by a rise that shows one answer later', () => {
    const owing = reading(3, { ...BEGUN, unexplained: 1, carried: 1 })

    const next = advance(RULES, owing, answer({ number: 3, next: 4, total: 13 }), match())

    expect(next.state).toMatchObject({ unexplained: 0, carried: 0 })
  })

  const ALL_AGAIN = match({ newToWalk: 0, newToPass: 0, previous: [KNOWN, KNOWN, KNOWN] })

  it.each<[string, PageMatch, Page, Partial<CoverageState>]>([
    ['no more repeats than it is high', ALL_AGAIN, answer({ total: 16 }), { unexplained: 1, carried: 1 }],
    ['no repeats of another page', ONE_AGAIN, answer({ total: 17 }), { unexplained: 2, carried: 2 }],
  ])('lets a rise pay for %s', (_what, first, page, expected) => {
    const pushed = advance(RULES, reading(2, BEGUN), page, first)
    const two = match({ newToPass: 1, previous: [KNOWN, KNOWN, null] })

    const next = advance(RULES, pushed, { ...page, number: 3, next: 4 }, two)

    expect(next.state).toMatchObject(expected)
  })

  it.each<[string, Partial<WalkRules>, Page, PageMatch, string]>([
    ['when the total fell and no item was repeated', {}, answer({ total: 11 }), match(), 'back 1'],
    ['but not when an item was repeated', {}, answer({ total: 11 }), ONE_AGAIN, 'forward 3'],
    ['nor in front of its first page', { firstPage: 2 }, answer({ total: 11 }), match(), 'forward 3'],
    ['nor when the total is ignored', { total: 'ignore' }, answer({ total: 11 }), match(), 'forward 3'],
  ])('steps back %s', (_when, rules, page, seen, expected) => {
    const { ask } = advance({ ...RULES, ...rules }, reading(2, BEGUN), page, seen)

    expect(`${ask?.why} ${ask?.page}`).toBe(expected)
  })

  it.each<[string, Partial<WalkRules>, Partial<CoverageState>, boolean]>([
    ['checks the list', {}, {}, true],
    ['checks no list whose total is ignored', { total: 'ignore' }, {}, false],
    ['checks no list that named no total', {}, { counted: false }, false],
    ['checks no part of a list', { kind: 'partial' }, {}, false],
  ])('at the end of a pass in which the list moved %s', (_what, rules, state, isChecked) => {
    const last = reading(4, { ...BEGUN, passMoved: true, ...state })

    const { ask } = advance({ ...RULES, ...rules }, last, answer({ number: 4, next: null }), match())

    expect(ask !== null).toBe(isChecked)
  })

  const beyond = (changed: Partial<Page> = {}) =>
    answer({ items: [], number: 9, next: null, lastPage: 4, ...changed })

  it.each<[string, number, Checkpoint, Page, number | null]>([
    ['does so in a walk from a later page', 4, reading(9, BEGUN), beyond(), 4],
    ['but never for a page before its first', 5, reading(9, BEGUN), beyond(), null],
    ['nor for one, when it knows no item to look for', 3, reading(9), beyond({ lastPage: 2 }), null],
    ['nor for more pages than the list has', 1, reading(9, { ...BEGUN, askedAgain: 4 }), beyond(), null],
  ])('%s', (_title, firstPage, from, page, expected) => {
    const next = advance({ ...RULES, kind: 'partial', firstPage }, from, page, NOTHING_NEW)

    expect(next.ask?.page ?? null).toBe(expected)
    expect(next.state).toMatchObject({ moved: true, passMoved: true })
  })

  it('never looks for a known item in front of its first page', () => {
    const overlap: Overlap = {
      until: KNOWN,
      index: 2,
      total: 12,
      top: { page: 4, next: null, total: 12 },
      rose: false,
      jumps: 0,
      isFree: true,
    }
    const from = reading(3, { ...BEGUN, overlap })

    const next = advance({ ...RULES, kind: 'partial', firstPage: 3 }, from, answer({ number: 3 }), {
      ...NOTHING_NEW,
      why: 'overlap',
    })

    expect(next.state.overlap).toBeNull()
  })

  it.each<[string, number, Page]>([
    ['a start page beyond the end', 9, beyond()],
    ['an empty list', 1, beyond({ number: 1, lastPage: 1, total: 0 })],
    ['an empty last page', 1, beyond({ number: 4 })],
    ['an empty page of a list that names no last one', 1, beyond({ lastPage: null })],
  ])('takes for the end: %s', (_what, firstPage, page) => {
    const next = advance({ ...RULES, firstPage }, reading(page.number), page, NOTHING_NEW)

    expect(next.nextPage).toBeNull()
    expect(next.state.moved).toBe(false)
  })

  it.each<[string, Partial<Page>, boolean]>([
    ['it is the last page', { next: null, lastPage: 2 }, false],
    ['it names a next page', {}, false],
    ['it is empty, and not the last page', { items: [], next: null }, true],
  ])('marks the pass as short or not: %s', (_what, changed, isShort) => {
    expect(advance(RULES, reading(2, BEGUN), answer(changed), match()).state.passShort).toBe(isShort)
  })

  /** An empty page of a list without a length. */
  const ENDLESS = { items: [], lastPage: null, total: null }
  const OF_FOUR: Partial<CoverageState> = { firstLastPage: 4, passAnswers: 1 }
  const goOn = (state: Partial<CoverageState>, page: Page) =>
    advance(RULES, reading(page.number, state), page, NOTHING_NEW)

  it.each<[string, Partial<CoverageState>, Partial<Page>]>([
    ['page 1,009 of a list that had 4 pages', OF_FOUR, { number: 1009, next: 1010 }],
    ['a thousand pages in a row without a new item', { pagesWithoutNews: 999 }, {}],
    ['ten pages in a row without a new item, the last one empty', { pagesWithoutNews: 9 }, { items: [] }],
    ['ten pages without news, beyond its last page', { pagesWithoutNews: 9 }, { number: 5, next: 6 }],
    ['a hundred empty pages', { pagesWithoutNews: 99 }, { ...ENDLESS, number: 100, next: 101 }],
  ])('is none for a list without end: %s', (_what, state, changed) => {
    const going = () => goOn(state, answer(changed))

    expect(going).toThrow(JobError)
    expect(going).toThrow(/does not end/)
  })

  it.each<[string, Partial<CoverageState>, Partial<Page>]>([
    ['page 1,008 of a list that had 4 pages', OF_FOUR, { number: 1008, next: 1009 }],
    ['page 1,009 if it is the last', OF_FOUR, { number: 1009, next: null, lastPage: 1009 }],
    ['ten empty pages of a list without a length', { pagesWithoutNews: 9 }, { items: [], lastPage: null }],
    ['ninety-nine empty pages', { pagesWithoutNews: 98 }, { ...ENDLESS, number: 99, next: 100 }],
    ['ten pages without news, the last one its last page', { pagesWithoutNews: 9 }, { number: 4, next: 5 }],
    ['a long list without a length', {}, { number: 90_000, next: 90_001, lastPage: null }],
  ])('continues for any other: %s', (_what, state, changed) => {
    const page = answer(changed)

    expect(goOn(state, page).nextPage).toBe(page.next)
  })

  it.each([4000, null])(
    'continues over empty pages of an API that hides items, with total: ignore (last page %s)',
    (lastPage) => {
      const page = answer({ number: 500, next: 501, items: [], lastPage })
      const rules: WalkRules = { ...RULES, total: 'ignore' }

      expect(advance(rules, reading(500, { pagesWithoutNews: 499 }), page, NOTHING_NEW).nextPage).toBe(501)
    },
  )
})

describe('the next pass', () => {
  it('starts at the first page and keeps what the walk knows', () => {
    const before = reading(9, {
      ...BEGUN,
      moved: true,
      passMoved: true,
      totalChanged: true,
      unexplained: 2,
      counted: false,
    })

    expect(nextPass({ ...before, pass: 2 })).toEqual({
      pass: 3,
      nextPage: 1,
      ask: forwardTo(1),
      state: { ...FRESH, firstTotal: 12, totalChanged: true, moved: true, counted: false, watching: true },
    })
  })

  it.each<[string, Partial<CoverageState>, boolean]>([
    ['did not move', {}, false],
    ['moved', { moved: true }, true],
    ['changed its total', { totalChanged: true }, true],
    ['moved before', { watching: true }, true],
  ])('looks back in a list that %s, or does not', (_what, state, watching) => {
    expect(nextPass(reading(9, { ...BEGUN, ...state })).state.watching).toBe(watching)
  })
})
