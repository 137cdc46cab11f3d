import { describe, expect, it } from 'vitest'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import {
  concluded,
  type LearnedLimit,
  leftIn,
  NOT_MEASURED,
  type Window,
  windowAfter,
  withCounted,
  withLearned,
} from '../../../src/api/rate/window.ts'
import { announced, MINUTE, NOTHING, NOW, SECOND, windowOf } from '../helpers/budgets.ts'

describe('what is left in a window', () => {
  it('is not raised by what a killed process has used of our share', () => {
    const window = windowOf({ remaining: 40, ours: 1 })

    expect(leftIn(window, { onTheirWay: 0, unanswered: 19 }, 50)).toBe(10)
    expect(leftIn(window, { onTheirWay: 0, unanswered: 0 }, 50)).toBe(29)
  })
})

describe('an answer', () => {
  it.each<[string, Window, RateHeaders, number, Partial<Window>]>([
    [
      'begins a window by its first count, whatever is in flight',
      windowOf({ remaining: 59, ours: 1 }),
      announced(60, 59),
      8,
      { remaining: 59, ours: 1, endsAt: NOW + 60_250 },
    ],
    ['is no jump when so many are in flight', windowOf(), announced(60, 34), 4, { remaining: 30, ours: 31 }],
  ])('%s', (_case, window, announcement, inFlight, expected) => {
    const answered = { at: NOW, leftIn: window, announced: announcement }

    expect(windowAfter(window, answered, inFlight)).toMatchObject(expected)
  })

  it.each<[string, Window | null, RateHeaders | null, Partial<Window>]>([
    ['counts when it left after the last window', null, announced(60, 20), { remaining: 20, ours: 31 }],
    ['counts, too, if it announces nothing then', null, NOTHING, { remaining: 29, ours: 31 }],
    ['changes nothing if it announces nothing and left before', windowOf({ endsAt: NOW - 1 }), NOTHING, {}],
  ])('that comes in a later window %s', (_case, before, announcement, expected) => {
    const window = windowAfter(windowOf(), { at: NOW, leftIn: before, announced: announcement }, 1)

    expect(window).toEqual({ ...windowOf(), ...expected })
  })

  it('that left in a window which is over shows nothing of the next window', () => {
    const over = windowOf({ remaining: 3, endsAt: NOW - 1 })

    expect(windowAfter(over, { at: NOW, leftIn: over, announced: announced(60, 3) }, 1)).toBe(over)
  })
})

const HOUR = 60 * MINUTE

function learned(changed: Partial<LearnedLimit> = {}): LearnedLimit {
  return { ...NOT_MEASURED, measured: 60, limit: 60, learnedAt: NOW - SECOND, ...changed }
}

describe('answers before a 429', () => {
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
    ['shows the lesser if they differ by a twentieth', 63, 60, 60],
    ['shows nothing if they differ by more', 64, 60, null],
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

  it.each<[string, Partial<typeof quiet> | object, Partial<LearnedLimit>, Window | null]>([
    ['with an answer whose request left in the last one', { leftIn: windowOf({ endsAt: NOW }) }, {}, null],
    ['once it was learned an hour ago', {}, { learnedAt: NOW - HOUR - 1 }, null],
    ['where it was measured only', {}, { limit: null }, null],
  ])('begins none %s', (_case, changed, known, window) => {
    const answered = { ...quiet, ...changed }

    expect(withLearned(answered, learned(known), window)).toEqual(answered)
  })
})
