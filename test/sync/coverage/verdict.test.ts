import { describe, expect, it } from 'vitest'
import { type CoverageState, startCheckpoint } from '../../../src/sync/coverage/state.ts'
import { judgePass, type PassRules } from '../../../src/sync/coverage/verdict.ts'

const FRESH = startCheckpoint(1).state

const RULES: PassRules = { maxPasses: 3, total: 'check', kind: 'full', firstPage: 1 }

/** A pass over four pages that read all ten items of a list. */
const WHOLE: Partial<CoverageState> = { firstTotal: 10, passTotal: 10, passAnswers: 4, passDistinct: 10 }
const ONE_ANSWER: Partial<CoverageState> = { firstTotal: 3, passTotal: 3, passAnswers: 1, passDistinct: 3 }
/** A repeated item that nothing explains. */
const MOVED = { moved: true, passMoved: true, unexplained: 1 }

/** All movements are explained. */
const SETTLED = { moved: true, passMoved: true }

interface Case {
  state: Partial<CoverageState>
  pass?: number
  distinct?: number
  rules?: Partial<PassRules>
  expected: string
}

const CASES: [string, Case][] = [
  ['nothing moved and all items came', { state: WHOLE, expected: 'complete steady' }],
  ['an item came on two pages', { state: { ...WHOLE, ...MOVED, passDistinct: 9 }, expected: 'again' }],
  ['an item came twice, and the sums agree', { state: { ...WHOLE, ...MOVED }, expected: 'again' }],
  [
    'the total changed',
    { state: { ...WHOLE, totalChanged: true, passMoved: true }, expected: 'complete repaired' },
  ],
  [
    'what moved is explained',
    { state: { ...WHOLE, ...SETTLED, passDistinct: 9 }, expected: 'complete repaired' },
  ],
  [
    'an item came twice, and one was found',
    { state: { ...WHOLE, ...MOVED, found: 1 }, expected: 'complete repaired' },
  ],
  [
    'two items came twice, and one was found',
    { state: { ...WHOLE, ...MOVED, unexplained: 2, found: 1 }, expected: 'again' },
  ],
  [
    'an item was moved, and one was found in its place',
    { state: { ...WHOLE, ...SETTLED, relocated: 1, foundBehind: 1 }, expected: 'complete repaired' },
  ],
  [
    'an item was moved, and none was found',
    { state: { ...WHOLE, ...SETTLED, relocated: 1, found: 1 }, expected: 'again' },
  ],
  [
    'something could not be followed to its end',
    { state: { ...WHOLE, ...SETTLED, unsettled: true }, expected: 'again' },
  ],
  [
    'it moved, and the last page says that there are more',
    { state: { ...WHOLE, ...SETTLED, passShort: true }, expected: 'again' },
  ],
  ['fewer items than the total', { state: { ...WHOLE, passDistinct: 9 }, expected: 'again' }],
  ['more items than the total', { state: { ...WHOLE, passDistinct: 11 }, expected: 'again' }],
  ['one answer', { state: ONE_ANSWER, expected: 'complete steady' }],
  [
    'one answer longer than its total',
    { state: { ...ONE_ANSWER, passDistinct: 4 }, expected: 'complete steady' },
  ],
  ['one answer shorter than its total', { state: { ...ONE_ANSWER, passDistinct: 2 }, expected: 'again' }],
  [
    'one answer without a total',
    {
      state: { ...ONE_ANSWER, firstTotal: null, passTotal: null, counted: false },
      expected: 'complete steady',
    },
  ],
  ['several answers without a total', { state: { ...WHOLE, counted: false }, expected: 'complete null' }],
  [
    'the total is ignored',
    { state: { ...WHOLE, passDistinct: 4 }, rules: { total: 'ignore' }, expected: 'complete null' },
  ],
  ['the walk is partial', { state: WHOLE, rules: { kind: 'partial' }, expected: 'complete null' }],
  [
    'the walk is partial and short',
    {
      state: { ...WHOLE, ...MOVED, passDistinct: 2 },
      rules: { kind: 'partial' },
      expected: 'complete null',
    },
  ],
  [
    'a later pass in which nothing moved',
    {
      state: { ...WHOLE, moved: true, totalChanged: true, firstTotal: 12 },
      pass: 2,
      distinct: 13,
      expected: 'complete repaired',
    },
  ],
  [
    'a later pass in which nothing moved, after one that was short',
    { state: WHOLE, pass: 2, expected: 'complete repaired' },
  ],
  [
    'later passes that together have as many as the total, which never changed',
    {
      state: { ...WHOLE, ...MOVED, passDistinct: 9 },
      pass: 2,
      distinct: 10,
      expected: 'complete repaired',
    },
  ],
  [
    'later passes that together have as many as the total, which did change',
    {
      state: { ...WHOLE, ...MOVED, totalChanged: true, passDistinct: 9 },
      pass: 2,
      distinct: 10,
      expected: 'again',
    },
  ],
  [
    'a later pass in one answer',
    { state: { ...ONE_ANSWER, moved: true }, pass: 2, distinct: 5, expected: 'complete repaired' },
  ],
  [
    'the last pass moved',
    { state: { ...WHOLE, ...MOVED }, pass: 3, distinct: 12, expected: 'complete drifted' },
  ],
  [
    'the last pass is short after one that moved',
    {
      state: { ...WHOLE, moved: true, passDistinct: 9 },
      pass: 3,
      distinct: 12,
      expected: 'complete drifted',
    },
  ],
  [
    'every pass was short and nothing moved',
    { state: { ...WHOLE, passDistinct: 9 }, pass: 3, distinct: 9, expected: 'incomplete' },
  ],
  [
    'the only pass was short and nothing moved',
    { state: { ...WHOLE, passDistinct: 9 }, rules: { maxPasses: 1 }, distinct: 9, expected: 'incomplete' },
  ],
  [
    'the only pass moved',
    { state: { ...WHOLE, ...MOVED }, rules: { maxPasses: 1 }, expected: 'complete drifted' },
  ],
  [
    'the last pass had more than the total',
    { state: { ...WHOLE, passDistinct: 11 }, pass: 3, distinct: 11, expected: 'complete drifted' },
  ],
]

describe('the end of a pass', () => {
  it.each(CASES)('%s', (_what, { state, pass = 1, distinct, rules = {}, expected }) => {
    const full = { ...FRESH, ...state }

    const verdict = judgePass(
      { pass, nextPage: null, ask: null, state: full },
      distinct ?? full.passDistinct,
      {
        ...RULES,
        ...rules,
      },
    )

    expect(verdict.kind === 'complete' ? `complete ${verdict.coverage}` : verdict.kind).toBe(expected)
  })

  it('says why another pass is needed', () => {
    const state = { ...FRESH, ...WHOLE, ...MOVED, totalChanged: true, passDistinct: 8, passRepeated: 2 }

    expect(judgePass({ pass: 1, nextPage: null, ask: null, state }, 8, RULES)).toEqual({
      kind: 'again',
      why: '8 items came of a total of 10, 2 of them twice, and the total changed meanwhile',
    })
  })
})
