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

/** An item was met far from where it was before. */
const RELOCATED = { ...WHOLE, ...SETTLED, relocated: 1 }
const SHORT = { ...WHOLE, passDistinct: 9 }
const CHANGED = { totalChanged: true }
const UNCOUNTED = { firstTotal: null, passTotal: null, counted: false }
const TOGETHER = { pass: 2, distinct: 10 }

type More = Partial<PassRules> & { pass?: number; distinct?: number }

/** What came of a pass, and the verdict; `distinct`: items of all passes, where they are not those of this one. */
const CASES: [string, Partial<CoverageState>, string, More?][] = [
  ['nothing moved and all items came', WHOLE, 'complete steady'],
  ['an item came on two pages', { ...WHOLE, ...MOVED, passDistinct: 9 }, 'again'],
  ['an item came twice, and the sums agree', { ...WHOLE, ...MOVED }, 'again'],
  ['the total changed', { ...WHOLE, totalChanged: true, passMoved: true }, 'complete repaired'],
  ['what moved is explained', { ...WHOLE, ...SETTLED, passDistinct: 9 }, 'complete repaired'],
  ['an item came twice, and one was found', { ...WHOLE, ...MOVED, found: 1 }, 'complete repaired'],
  ['two came twice, and one was found', { ...WHOLE, ...MOVED, unexplained: 2, found: 1 }, 'again'],
  ['one was moved, and one found in its place', { ...RELOCATED, foundBehind: 1 }, 'complete repaired'],
  ['one was moved, and none found in its place', { ...RELOCATED, found: 1 }, 'again'],
  ['something could not be followed to its end', { ...WHOLE, ...SETTLED, unsettled: true }, 'again'],
  ['it moved, and says that there are more', { ...WHOLE, ...SETTLED, passShort: true }, 'again'],
  ['fewer items than the total', { ...WHOLE, passDistinct: 9 }, 'again'],
  ['more items than the total', { ...WHOLE, passDistinct: 11 }, 'again'],
  ['one answer', ONE_ANSWER, 'complete steady'],
  ['one answer longer than its total', { ...ONE_ANSWER, passDistinct: 4 }, 'complete steady'],
  ['one answer shorter than its total', { ...ONE_ANSWER, passDistinct: 2 }, 'again'],
  ['one answer without a total', { ...ONE_ANSWER, ...UNCOUNTED }, 'complete steady'],
  ['several answers without a total', { ...WHOLE, counted: false }, 'complete null'],
  ['the total is ignored', { ...WHOLE, passDistinct: 4 }, 'complete null', { total: 'ignore' }],
  ['the walk is partial', WHOLE, 'complete null', { kind: 'partial' }],
  ['a partial walk is short', { ...WHOLE, ...MOVED, passDistinct: 2 }, 'complete null', { kind: 'partial' }],
  ['later: nothing moved', { ...WHOLE, moved: true, firstTotal: 12 }, 'complete repaired', { pass: 2 }],
  ['later: nothing moved, after a short pass', WHOLE, 'complete repaired', { pass: 2 }],
  ['all passes have the total', { ...WHOLE, ...MOVED, passDistinct: 9 }, 'complete repaired', TOGETHER],
  ['all have it, and it changed', { ...WHOLE, ...MOVED, ...CHANGED, passDistinct: 9 }, 'again', TOGETHER],
  ['later: one answer', { ...ONE_ANSWER, moved: true }, 'complete repaired', { pass: 2, distinct: 5 }],
  ['the last pass moved', { ...WHOLE, ...MOVED }, 'complete drifted', { pass: 3, distinct: 12 }],
  ['the last is short, one moved', { ...SHORT, moved: true }, 'complete drifted', { pass: 3, distinct: 12 }],
  ['every pass was short and nothing moved', SHORT, 'incomplete', { pass: 3, distinct: 9 }],
  ['the only pass was short and nothing moved', SHORT, 'incomplete', { maxPasses: 1, distinct: 9 }],
  ['the only pass moved', { ...WHOLE, ...MOVED }, 'complete drifted', { maxPasses: 1 }],
  ['the last had more', { ...WHOLE, passDistinct: 11 }, 'complete drifted', { pass: 3, distinct: 11 }],
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
