import { describe, expect, it } from 'vitest'
import {
  judgePass,
  type PassEnd,
  type VerdictRules,
  type WalkEnd,
} from '../../../src/sync/coverage/verdict.ts'

const RULES: VerdictRules = { kind: 'full', total: 'check', maxPasses: 3, hasDrifted: false }

/** A pass over four pages that read all ten items of a list. */
const WHOLE: PassEnd = {
  moved: false,
  answers: 4,
  distinct: 10,
  repeated: 0,
  total: 10,
  isSettled: true,
  isShort: false,
}

const FIRST: WalkEnd = { pass: 1, distinct: 10, counted: true, moved: false, totalChanged: false }

const SHORT = { distinct: 9 }
const ONE_ANSWER = { answers: 1, total: 3 }
const SETTLED = { moved: true }
const UNSETTLED = { moved: true, isSettled: false }
const LAST = { pass: 3, distinct: 9 }
const ENDS_TOO_EARLY = { isShort: true, total: null, answers: 1 }

describe('the end of a pass', () => {
  it.each<[string, Partial<PassEnd>, Partial<WalkEnd>, string, Partial<VerdictRules>?]>([
    ['nothing moved and all items came', {}, {}, 'complete steady'],
    ['it moved, and all is explained', SETTLED, {}, 'complete repaired'],
    ['it moved, and not all is explained', UNSETTLED, {}, 'again'],
    ['nothing moved, and one item is missing', SHORT, {}, 'again'],
    ['one answer longer than its total', { ...ONE_ANSWER, distinct: 4 }, {}, 'complete steady'],
    [
      'one answer of its total with an item twice',
      { ...ONE_ANSWER, distinct: 2, repeated: 1 },
      {},
      'complete steady',
    ],
    ['one answer shorter than its total', { ...ONE_ANSWER, distinct: 2 }, {}, 'again'],
    ['one answer without a total', { answers: 1, total: null }, { counted: false }, 'complete steady'],
    ['several answers without a total', { total: null }, { counted: false }, 'complete null'],
    ['the total is ignored', { distinct: 4 }, {}, 'complete null', { total: 'ignore' }],
    ['the walk is partial', UNSETTLED, {}, 'complete null', { kind: 'partial' }],
    ['later, nothing moved', {}, { pass: 2, moved: true }, 'complete repaired'],
    [
      'later, all passes together have the total',
      { ...UNSETTLED, distinct: 9 },
      { pass: 2 },
      'complete repaired',
    ],
    ['the same, of a total that changed', UNSETTLED, { pass: 2, totalChanged: true }, 'again'],
    ['the last is not explained', UNSETTLED, { pass: 3, distinct: 12 }, 'complete drifted'],
    ['the last is short, one moved', SHORT, { ...LAST, moved: true }, 'complete drifted'],
    ['every pass was short and nothing moved', SHORT, LAST, 'incomplete'],
    ['it ends before the last page that it names', ENDS_TOO_EARLY, { counted: false }, 'again'],
    ['every pass ended so', ENDS_TOO_EARLY, { pass: 3, counted: false }, 'incomplete'],
    ['the last walk drifted, and this one does', UNSETTLED, {}, 'complete drifted', { hasDrifted: true }],
    ['the last walk drifted, and this one is short', SHORT, { distinct: 9 }, 'again', { hasDrifted: true }],
    ['the last walk drifted, and this one does not', {}, {}, 'complete steady', { hasDrifted: true }],
  ])('%s', (_what, pass, walk, expected, rules = {}) => {
    const verdict = judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, { ...RULES, ...rules })

    expect(verdict.kind === 'complete' ? `complete ${verdict.coverage}` : verdict.kind).toBe(expected)
  })

  it.each<[Partial<PassEnd>, Partial<WalkEnd>, string]>([
    [{ ...SHORT, repeated: 2 }, {}, '9 items came of a total of 10, 2 of them twice'],
    [UNSETTLED, { totalChanged: true }, '10 items came of a total of 10, and the total changed meanwhile'],
    [
      { ...ENDS_TOO_EARLY, distinct: 9 },
      {},
      '9 items came, and the last page says that there are more pages',
    ],
  ])('says in words what does not add up: %j', (pass, walk, why) => {
    expect(judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, RULES)).toEqual({ kind: 'again', why })
  })
})
