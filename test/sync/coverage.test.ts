import { describe, expect, it } from 'vitest'
import { JobError } from '../../src/errors.ts'
import { advance, judgePass, nextPass, type PassRules, startCheckpoint } from '../../src/sync/coverage.ts'
import type { Account, Checkpoint, Page, Sighting } from '../../src/sync/types.ts'
import { pageOf } from '../helpers/pages.ts'

const FRESH = startCheckpoint(1).account

function checkpoint(account: Partial<Account>, nextPage: number | null = null, pass = 1): Checkpoint {
  return { pass, nextPage, account: { ...FRESH, ...account } }
}

/** Three items on page 2 of 4, of 12 in all. */
function answer(changed: Partial<Page> = {}): Page {
  return pageOf(['{"id":4}', '{"id":5}', '{"id":6}'], {
    number: 2,
    next: 3,
    total: 12,
    lastPage: 4,
    ...changed,
  })
}

function sighting(changed: Partial<Sighting> = {}): Sighting {
  return { pass: 1, entries: [], newToWalk: 3, newToPass: 3, repeated: 0, ...changed }
}

/** After page 1 of 4. */
const BEGUN = checkpoint(
  { firstTotal: 12, passTotal: 12, firstLastPage: 4, passAnswers: 1, passDistinct: 3 },
  2,
)
const NOTHING_NEW = sighting({ newToWalk: 0, newToPass: 0 })

describe('the checkpoint after a page', () => {
  it('begins with the first page of the walk', () => {
    expect(startCheckpoint(7)).toMatchObject({ pass: 1, nextPage: 7 })
  })

  it.each<[string, Checkpoint, Page, Sighting, Partial<Account>]>([
    ['counts what came', BEGUN, answer(), sighting(), { passAnswers: 2, passDistinct: 6, moved: false }],
    [
      'counts an item that stood on another page, as a movement',
      BEGUN,
      answer(),
      sighting({ newToPass: 2, repeated: 1 }),
      { passDistinct: 5, passRepeated: 1, moved: true, passMoved: true, totalChanged: false },
    ],
    [
      'notes another total',
      BEGUN,
      answer({ total: 11 }),
      sighting(),
      { firstTotal: 12, totalChanged: true, passMoved: true },
    ],
    [
      'remembers that the total changed when it is back',
      checkpoint({ ...BEGUN.account, totalChanged: true, passMoved: true }, 2),
      answer(),
      sighting(),
      { totalChanged: true, passMoved: true },
    ],
    ['notes a missing total', BEGUN, answer({ total: null }), sighting(), { counted: false }],
    [
      'does not take a missing total for another one',
      BEGUN,
      answer({ total: null }),
      sighting(),
      { totalChanged: false, passMoved: false },
    ],
    [
      'can count a list without paging and total',
      checkpoint({}, 1),
      answer({ number: 1, next: null, total: null, lastPage: null, paginated: false }),
      sighting(),
      { counted: true, paginated: false, passAnswers: 1 },
    ],
    [
      'takes totals and last page from the first answer',
      checkpoint({}, 1),
      answer({ number: 1, next: 2 }),
      sighting(),
      { firstTotal: 12, passTotal: 12, firstLastPage: 4 },
    ],
    [
      'does not mind a page asked again that is as it was',
      checkpoint(BEGUN.account, 3),
      answer(),
      NOTHING_NEW,
      { moved: false, passMoved: false, passAnswers: 2, passDistinct: 3 },
    ],
    [
      'takes something new on a page asked again for a movement',
      checkpoint(BEGUN.account, 3),
      answer(),
      sighting({ newToPass: 1 }),
      { moved: true, passMoved: true, passDistinct: 4 },
    ],
    ['counts pages with nothing new', BEGUN, answer(), NOTHING_NEW, { stale: 1 }],
    ['forgets them with something new', checkpoint({ stale: 9 }, 2), answer(), sighting(), { stale: 0 }],
  ])('%s', (_title, from, page, seen, expected) => {
    const next = advance({ firstPage: 1 }, from, page, seen)

    expect(next).toMatchObject({ pass: 1, nextPage: page.next })
    expect(next.account).toMatchObject(expected)
  })

  const beyond = (changed: Partial<Page> = {}) =>
    answer({ items: [], number: 9, next: null, lastPage: 4, ...changed })

  it.each<[string, number, Checkpoint, Page, number | null]>([
    ['steps back to the last page from beyond the end', 1, checkpoint({}, 9), beyond(), 4],
    ['does so when the last page was asked again', 1, checkpoint({}, 10), beyond(), 4],
    ['does so once a pass', 1, checkpoint({ steppedBack: true }, 9), beyond(), null],
    ['does so for a walk from a later page', 4, checkpoint({}, 9), beyond(), 4],
    ['but never to before its first page', 5, checkpoint({}, 9), beyond(), null],
    ['and not to a page 0', 1, checkpoint({}, 9), beyond({ lastPage: 0, total: 0 }), null],
  ])('%s', (_title, firstPage, from, page, expected) => {
    const next = advance({ firstPage }, from, page, NOTHING_NEW)

    expect(next.nextPage).toBe(expected)
    expect(next.account).toMatchObject({ moved: true, passMoved: true })
  })

  it.each<[string, number, Page]>([
    ['a start page beyond the end', 9, beyond()],
    ['an empty list', 1, beyond({ number: 1, lastPage: 1, total: 0 })],
    ['an empty list that says it has no page', 1, beyond({ number: 1, lastPage: 0, total: 0 })],
    ['an empty last page', 1, beyond({ number: 4 })],
  ])('takes for the end: %s', (_what, firstPage, page) => {
    const next = advance({ firstPage }, checkpoint({}, page.number), page, NOTHING_NEW)

    expect(next.nextPage).toBeNull()
    expect(next.account.moved).toBe(false)
  })

  const OF_FOUR: Partial<Account> = { firstLastPage: 4, passAnswers: 1 }
  const goOn = (account: Partial<Account>, page: Page) =>
    advance({ firstPage: 1 }, checkpoint(account, page.number), page, NOTHING_NEW)

  it.each<[string, Partial<Account>, Partial<Page>]>([
    ['page 1,009 of what had 4 pages', OF_FOUR, { number: 1009, next: 1010 }],
    ['a thousand pages in a row with nothing new', { stale: 999 }, {}],
  ])('is none for a list without end: %s', (_what, account, changed) => {
    const going = () => goOn(account, answer(changed))

    expect(going).toThrow(JobError)
    expect(going).toThrow(/does not end/)
  })

  it.each<[string, Partial<Account>, Partial<Page>]>([
    ['page 1,008 of what had 4 pages', OF_FOUR, { number: 1008, next: 1009 }],
    ['page 1,009 when it is the last', OF_FOUR, { number: 1009, next: null, lastPage: 1009 }],
    ['fewer pages in a row with nothing new', { stale: 998 }, {}],
    ['a long list that never said how long it is', {}, { number: 90_000, next: 90_001, lastPage: null }],
  ])('goes on for any other: %s', (_what, account, changed) => {
    const page = answer(changed)

    expect(goOn(account, page).nextPage).toBe(page.next)
  })
})

const RULES: PassRules = { maxPasses: 3, total: 'check', kind: 'full' }

/** A pass over four pages of a list of ten, all of which came. */
const WHOLE: Partial<Account> = { firstTotal: 10, passTotal: 10, passAnswers: 4, passDistinct: 10 }
const ONE_ANSWER: Partial<Account> = { firstTotal: 3, passTotal: 3, passAnswers: 1, passDistinct: 3 }
const MOVED = { moved: true, passMoved: true }

interface Case {
  account: Partial<Account>
  pass?: number
  distinct?: number
  rules?: Partial<PassRules>
  expected: string
}

const CASES: [string, Case][] = [
  ['nothing moved and all came', { account: WHOLE, expected: 'complete steady' }],
  ['an item came on two pages', { account: { ...WHOLE, ...MOVED, passDistinct: 9 }, expected: 'again' }],
  [
    'an item came twice, and yet as many as the total',
    { account: { ...WHOLE, ...MOVED }, expected: 'again' },
  ],
  ['the total changed', { account: { ...WHOLE, totalChanged: true, passMoved: true }, expected: 'again' }],
  ['fewer came than the total', { account: { ...WHOLE, passDistinct: 9 }, expected: 'again' }],
  ['more came than the total', { account: { ...WHOLE, passDistinct: 11 }, expected: 'again' }],
  ['one answer', { account: ONE_ANSWER, expected: 'complete steady' }],
  [
    'one answer longer than its total',
    { account: { ...ONE_ANSWER, passDistinct: 4 }, expected: 'complete steady' },
  ],
  ['one answer shorter than its total', { account: { ...ONE_ANSWER, passDistinct: 2 }, expected: 'again' }],
  [
    'one answer without a total',
    {
      account: { ...ONE_ANSWER, firstTotal: null, passTotal: null, counted: false },
      expected: 'complete steady',
    },
  ],
  ['several answers without a total', { account: { ...WHOLE, counted: false }, expected: 'complete null' }],
  [
    'the total is ignored',
    { account: { ...WHOLE, passDistinct: 4 }, rules: { total: 'ignore' }, expected: 'complete null' },
  ],
  ['the walk is partial', { account: WHOLE, rules: { kind: 'partial' }, expected: 'complete null' }],
  [
    'the walk is partial and short',
    {
      account: { ...WHOLE, ...MOVED, passDistinct: 2 },
      rules: { kind: 'partial' },
      expected: 'complete null',
    },
  ],
  [
    'a later pass in which nothing moved',
    {
      account: { ...WHOLE, moved: true, totalChanged: true, firstTotal: 12 },
      pass: 2,
      distinct: 13,
      expected: 'complete repaired',
    },
  ],
  [
    'a later pass in which nothing moved, after one that was short',
    { account: WHOLE, pass: 2, expected: 'complete repaired' },
  ],
  [
    'later passes that together have as many as the total, which never changed',
    {
      account: { ...WHOLE, ...MOVED, passDistinct: 9 },
      pass: 2,
      distinct: 10,
      expected: 'complete repaired',
    },
  ],
  [
    'later passes that together have as many as the total, which did change',
    {
      account: { ...WHOLE, ...MOVED, totalChanged: true, passDistinct: 9 },
      pass: 2,
      distinct: 10,
      expected: 'again',
    },
  ],
  [
    'a later pass in one answer',
    { account: { ...ONE_ANSWER, moved: true }, pass: 2, distinct: 5, expected: 'complete repaired' },
  ],
  [
    'the last pass moved',
    { account: { ...WHOLE, ...MOVED }, pass: 3, distinct: 12, expected: 'complete drifted' },
  ],
  [
    'the last pass is short after one that moved',
    {
      account: { ...WHOLE, moved: true, passDistinct: 9 },
      pass: 3,
      distinct: 12,
      expected: 'complete drifted',
    },
  ],
  [
    'every pass was short and nothing moved',
    { account: { ...WHOLE, passDistinct: 9 }, pass: 3, distinct: 9, expected: 'incomplete' },
  ],
  [
    'the only pass was short and nothing moved',
    { account: { ...WHOLE, passDistinct: 9 }, rules: { maxPasses: 1 }, distinct: 9, expected: 'incomplete' },
  ],
  [
    'the only pass moved',
    { account: { ...WHOLE, ...MOVED }, rules: { maxPasses: 1 }, expected: 'complete drifted' },
  ],
  [
    'the last pass had more than the total',
    { account: { ...WHOLE, passDistinct: 11 }, pass: 3, distinct: 11, expected: 'complete drifted' },
  ],
]

describe('the end of a pass', () => {
  it.each(CASES)('%s', (_what, { account, pass = 1, distinct, rules = {}, expected }) => {
    const full = { ...FRESH, ...account }

    const verdict = judgePass({ pass, nextPage: null, account: full }, distinct ?? full.passDistinct, {
      ...RULES,
      ...rules,
    })

    expect(verdict.kind === 'complete' ? `complete ${verdict.coverage}` : verdict.kind).toBe(expected)
  })

  it('says what was seen, where that is not enough', () => {
    const account = { ...FRESH, ...WHOLE, ...MOVED, totalChanged: true, passDistinct: 8, passRepeated: 2 }

    expect(judgePass({ pass: 1, nextPage: null, account }, 8, RULES)).toEqual({
      kind: 'again',
      why: '8 items came of a total of 10, 2 of them twice, and the total changed meanwhile',
    })
  })
})

describe('the next pass', () => {
  it('begins at the first page, and keeps what the walk knows', () => {
    const before = checkpoint(
      {
        ...WHOLE,
        ...MOVED,
        totalChanged: true,
        passRepeated: 2,
        stale: 3,
        steppedBack: true,
        firstLastPage: 4,
      },
      null,
      2,
    )

    expect(nextPass(before)).toEqual({
      pass: 3,
      nextPage: 1,
      account: { ...FRESH, firstTotal: 10, totalChanged: true, moved: true },
    })
  })

  it('remembers that there was nothing to count by', () => {
    expect(nextPass(checkpoint({ counted: false })).account.counted).toBe(false)
  })
})
