import { describe, expect, it } from 'vitest'
import { totalsAfter } from '../../../src/sync/coverage/observe.ts'
import {
  type CoverageState,
  startCheckpoint,
  type Totals,
  type Why,
} from '../../../src/sync/coverage/state.ts'
import {
  isSwinging,
  isTotalWrong,
  judgePass,
  offBy,
  type PassRules,
  totalOff,
  totalsOfNextPass,
} from '../../../src/sync/coverage/verdict.ts'
import type { Checkpoint } from '../../../src/sync/types.ts'
import { pageOf } from '../../helpers/pages.ts'

const FRESH = startCheckpoint(1).state

const RULES: PassRules = { firstPage: 1, total: 'check', kind: 'full', maxPasses: 3 }

/** A pass over four pages that read all ten items of a list. */
const WHOLE: Partial<CoverageState> = { firstTotal: 10, passTotal: 10, passAnswers: 4, passDistinct: 10 }
const ONE_ANSWER: Partial<CoverageState> = { firstTotal: 3, passTotal: 3, passAnswers: 1, passDistinct: 3 }
/** A repeated item that nothing explains. */
const MOVED = { moved: true, passMoved: true, unexplained: 1 }

/** All movements are explained. */
const SETTLED = { moved: true, passMoved: true }

const NINE = '9 items came'
const MORE = 'that there are more pages'

/** An item was met far from where it was before. */
const RELOCATED = { ...WHOLE, ...SETTLED, relocated: 1 }
const SHORT = { ...WHOLE, passDistinct: 9 }
const TOGETHER = { pass: 2, distinct: 10 }

type More = Partial<PassRules> & { pass?: number; distinct?: number }

/** What came of a pass, and the verdict; `distinct`: items of all passes, where they are not those of this one. */
const CASES: [string, Partial<CoverageState>, string, More?][] = [
  ['nothing moved and all items came', WHOLE, 'complete steady'],
  ['the total changed', { ...WHOLE, totalChanged: true, passMoved: true }, 'complete repaired'],
  ['one was moved, and none found in its place', { ...RELOCATED, found: 1 }, 'again'],
  ['one answer longer than its total', { ...ONE_ANSWER, passDistinct: 4 }, 'complete steady'],
  ['one answer shorter than its total', { ...ONE_ANSWER, passDistinct: 2 }, 'again'],
  ['the total is ignored', { ...WHOLE, passDistinct: 4 }, 'complete null', { total: 'ignore' }],
  ['the walk is partial', WHOLE, 'complete null', { kind: 'partial' }],
  ['later: nothing moved', { ...WHOLE, moved: true, firstTotal: 12 }, 'complete repaired', { pass: 2 }],
  ['all passes have the total', { ...WHOLE, ...MOVED, passDistinct: 9 }, 'complete repaired', TOGETHER],
  ['the last is short, one moved', { ...SHORT, moved: true }, 'complete drifted', { pass: 3, distinct: 12 }],
  ['every pass was short and nothing moved', SHORT, 'incomplete', { pass: 3, distinct: 9 }],
]

describe('the end of a pass', () => {
  it.each(CASES)('%s', (_what, changed, expected, { pass = 1, distinct, ...rules } = {}) => {
    const state = { ...FRESH, ...changed }

    const verdict = judgePass({ pass, nextPage: null, ask: null, state }, distinct ?? state.passDistinct, {
      ...RULES,
      ...rules,
    })

    expect(verdict.kind === 'complete' ? `complete ${verdict.coverage}` : verdict.kind).toBe(expected)
  })
})

/** The end of a pass with this state. */
function endOf(state: Partial<CoverageState>, pass = 1): Checkpoint {
  return { pass, nextPage: null, ask: null, state: { ...FRESH, ...state } }
}

describe('the end of a pass', () => {
  it.each<[string, Partial<CoverageState>, string]>([
    ['items twice', { ...SHORT, passRepeated: 2 }, '9 items came of a total of 10, 2 of them twice'],
    ['an end too early', { passDistinct: 9, passShort: true }, `${NINE}, and the last page says ${MORE}`],
  ])('says why the list is read again: %s', (_what, state, why) => {
    expect(judgePass(endOf(state), 9, RULES)).toEqual({ kind: 'again', why })
  })

  it('is drifted if the sums of the last pass agree, but the list moved', () => {
    const state = { passTotal: 10, passDistinct: 10, passMoved: true, unexplained: 1 }

    expect(judgePass(endOf(state, 3), 11, RULES)).toMatchObject({
      kind: 'complete',
      coverage: 'drifted',
      why: '10 items came of a total of 10',
    })
  })

  it('with equal sums is incomplete if the last page says that there are more', () => {
    const state = { passTotal: 9, passDistinct: 9, passShort: true }

    expect(judgePass(endOf(state, 3), 9, RULES).kind).toBe('incomplete')
  })

  it.each([
    [{ passTotal: 9, passDistinct: 10 }, 'set total: ignore'],
    [{ passTotal: 9, passDistinct: 10, totalChanged: true }, 'changed meanwhile'],
  ])('that is drifted gives advice if the total never changes and is too low: %o', (state, words) => {
    const verdict = judgePass(endOf({ ...state, moved: true, unexplained: 1 }, 3), 10, RULES)

    expect(verdict).toMatchObject({ coverage: 'drifted', why: expect.stringMatching(`${words}$`) })
  })
})

/** Answers with three items each and these totals, all to `forward` unless `whys` says otherwise. */
function seen(totals: readonly (number | null)[], whys: readonly Why[] = []): Totals {
  return totals.reduce<Totals>((before, total, index) => {
    const page = pageOf(['{"id":1}', '{"id":2}', '{"id":3}'], { number: index + 1, next: null, total })
    return totalsAfter(before, whys[index] ?? 'forward', page)
  }, FRESH.totals)
}

/** This many totals, repeating these. */
function often(totals: readonly number[], answers = 40): number[] {
  return Array.from({ length: answers }, (_, index) => totals[index % totals.length] ?? 0)
}

describe('a total', () => {
  it.each<[string, readonly (number | null)[], boolean]>([
    ['never changes', often([100]), false],
    ['goes up and down', often([100, 101]), true],
    ['goes up and down, though not for long', often([100, 101], 19), false],
  ])('that %s swings, or does not', (_what, totals, swings) => {
    expect(isSwinging({ totals: seen(totals) })).toBe(swings)
  })

  it.each<[string, Totals, number | null]>([
    ['unknown after an overlap', seen([9, 9, 9], ['forward', 'overlap', 'forward']), null],
    ['no total', seen([null, null]), null],
  ])('is off by so much: %s', (_what, totals, off) => {
    expect(offBy({ totals })).toBe(off)
  })

  it.each<[string, Partial<typeof FRESH>, boolean, 'once' | 'again' | null]>([
    ['it is off once', { totals: seen([12, 12, 12]) }, false, 'once'],
    ['it is off, as it was before', { totals: { ...seen([12, 12, 12]), isDoubted: true } }, true, 'again'],
    ['it swings', { totals: seen(often([100, 101])) }, true, 'again'],
    ['a wrong end', { passShort: true, totals: { ...seen([12, 12, 12]), isDoubted: true } }, false, 'once'],
  ])('is wrong, or may be: %s', (_what, state, isWrong, off) => {
    expect(isTotalWrong({ ...FRESH, ...state })).toBe(isWrong)
    expect(totalOff('drifted', { ...FRESH, ...state })).toBe(off)
    expect(totalOff('repaired', { ...FRESH, ...state })).toBeNull()
  })

  it('is doubted in the next pass if it was off', () => {
    const off = totalsOfNextPass({ ...FRESH, totals: seen([12, 12, 12]) })
    const right = totalsOfNextPass({ ...FRESH, totals: { ...seen([9, 9, 9]), isDoubted: true } })

    expect([off, right]).toMatchObject([
      { isDoubted: true, listed: 0, answers: 3 },
      { isDoubted: false, listed: 0, answers: 3 },
    ])
  })
})
