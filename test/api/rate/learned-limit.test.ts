import { describe, expect, it } from 'vitest'
import type { Window } from '../../../src/api/rate/window.ts'
import {
  concluded,
  type LearnedLimit,
  NOT_MEASURED,
  withCounted,
  withLearned,
} from '../../../src/api/rate/window.ts'
import { announced, MINUTE, NOTHING, NOW, SECOND, windowOf } from '../helpers/budgets.ts'

const HOUR = 60 * MINUTE

function learned(changed: Partial<LearnedLimit> = {}): LearnedLimit {
  return { ...NOT_MEASURED, measured: 60, limit: 60, learnedAt: NOW - SECOND, ...changed }
}

describe('answers before a 429', () => {
  it('are counted from a minute before it on, late ones included', () => {
    const times = [NOW - MINUTE, NOW - MINUTE + 1, NOW - 5, NOW + 5]

    expect(withCounted(NOT_MEASURED, times, NOW)).toEqual({
      ...NOT_MEASURED,
      count: 3,
      firstAt: NOW - MINUTE + 1,
    })
  })

  it('are added up over several processes', () => {
    const one = withCounted(NOT_MEASURED, [NOW - 20], NOW)
    const both = withCounted(one, [NOW - 30, NOW - 10], NOW)

    expect(both).toMatchObject({ count: 3, firstAt: NOW - 30 })
    expect(withCounted(both, [], NOW)).toEqual(both)
  })
})

/** Responses before the last 429, and before the one before it. */
function counted(count: number, measured: number | null, firstAt = NOW - MINUTE): LearnedLimit {
  return { ...learned(), count, measured, firstAt }
}

describe('the first answer after a 429', () => {
  it.each<[string, number, number | null, number | null]>([
    ['shows nothing at the first time', 60, null, null],
    ['shows the limit if both counts are alike', 60, 60, 60],
    ['shows the lesser if they differ by a twentieth', 63, 60, 60],
    ['shows nothing if they differ by more', 64, 60, null],
    ['shows a small limit if they differ by one', 4, 5, 4],
    ['shows nothing if they differ by two', 3, 5, null],
  ])('%s', (_case, count, measured, limit) => {
    expect(concluded(counted(count, measured), NOW, NOW + 5)).toEqual({
      count: 0,
      firstAt: 0,
      measured: count,
      limit,
      learnedAt: NOW + 5,
    })
  })

  it('shows nothing if none came before the 429', () => {
    expect(concluded(counted(0, 60), NOW, NOW)).toEqual(NOT_MEASURED)
  })

  it('shows nothing if the pause ended sooner than a minute', () => {
    expect(concluded(counted(60, 60, NOW - 54_999), NOW, NOW)).toEqual(NOT_MEASURED)
    expect(concluded(counted(60, 60, NOW - 55_000), NOW, NOW).limit).toBe(60)
  })
})

describe('a limit that was learned', () => {
  const quiet = { at: NOW, leftIn: null, announced: { ...NOTHING, resetMs: 5 } }

  it('begins a window with an answer that announces nothing', () => {
    const expected = { ...quiet, announced: { ...announced(60, 59), resetMs: 5 } }

    expect(withLearned(quiet, learned(), null)).toEqual(expected)
    expect(withLearned(quiet, learned(), windowOf({ endsAt: NOW }))).toEqual(expected)
  })

  it.each<[string, Partial<typeof quiet> | object, Partial<LearnedLimit>, Window | null]>([
    ['in the middle of one', {}, {}, windowOf()],
    ['with an answer whose request left in the last one', { leftIn: windowOf({ endsAt: NOW }) }, {}, null],
    ['with an answer that announces it', { announced: announced(50, 20) }, {}, null],
    ['with an answer that never came', { announced: null }, {}, null],
    ['once it was learned an hour ago', {}, { learnedAt: NOW - HOUR - 1 }, null],
    ['where it was measured only', {}, { limit: null }, null],
  ])('begins none %s', (_case, changed, known, window) => {
    const answered = { ...quiet, ...changed }

    expect(withLearned(answered, learned(known), window)).toEqual(answered)
  })
})
