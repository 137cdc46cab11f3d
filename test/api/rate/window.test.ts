import { describe, expect, it } from 'vitest'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import {
  concluded,
  currentWindow,
  type LearnedLimit,
  leftIn,
  NOT_MEASURED,
  type Window,
  windowAfter,
  withCounted,
  withLearned,
} from '../../../src/api/rate/window.ts'
import { announced, MINUTE, NOTHING, NOW, SECOND, windowOf } from '../helpers/budgets.ts'

/** The window after a response whose request left in it. */
function windowThen(window: Window | null, announcement: RateHeaders | null, inFlight = 1): Window | null {
  return windowAfter(
    window,
    { at: NOW, leftIn: currentWindow(window, NOW), announced: announcement },
    inFlight,
  )
}

describe('what is left in a window', () => {
  it.each<[string, number, Partial<Window>, number, number]>([
    ['is what the server says', 100, { remaining: 30 }, 0, 30],
    ['is less what is on its way', 100, { remaining: 30 }, 3, 27],
    ['is nothing when all of it is on its way', 100, { remaining: 3 }, 3, 0],
    ['is nothing in a window of 0', 100, { limit: 0, remaining: 0, ours: 0 }, 0, 0],
    ['is the rest of our share', 50, { remaining: 31, ours: 29 }, 0, 1],
    ['is nothing once our share is used', 50, { remaining: 30, ours: 30 }, 0, 0],
    ['is all when others have used their share', 50, { remaining: 29, ours: 1 }, 0, 29],
    ['is nothing when others have used ours, too', 50, { remaining: 0, ours: 1 }, 0, 0],
    ['is not what others have not used yet', 50, { remaining: 20, ours: 30 }, 0, 0],
    ['is a share of one at the least', 1, { remaining: 60, ours: 0 }, 0, 1],
  ])('%s', (_case, sharePercent, window, onTheirWay, left) => {
    const requests = { onTheirWay, unanswered: onTheirWay }

    expect(leftIn(windowOf(window), requests, sharePercent)).toBe(left)
  })

  it('is not raised by what a killed process has used of our share', () => {
    const window = windowOf({ remaining: 40, ours: 1 })

    expect(leftIn(window, { onTheirWay: 0, unanswered: 19 }, 50)).toBe(10)
    expect(leftIn(window, { onTheirWay: 0, unanswered: 0 }, 50)).toBe(29)
  })
})

describe('a window', () => {
  it('is known until it is over', () => {
    expect(currentWindow(windowOf({ endsAt: NOW + 1 }), NOW)).toEqual(windowOf({ endsAt: NOW + 1 }))
    expect(currentWindow(windowOf({ endsAt: NOW }), NOW)).toBeNull()
    expect(currentWindow(null, NOW)).toBeNull()
  })
})

describe('an answer', () => {
  it.each<[string, RateHeaders, Partial<Window>]>([
    ['a minute and a moment from now', announced(60, 59), { remaining: 59, ours: 1, endsAt: NOW + 60_250 }],
    ['as the server says', announced(60, 40, 12_000), { remaining: 40, ours: 20, endsAt: NOW + 13_000 }],
    ['after a minute at the latest', announced(60, 59, 3_600_000), { endsAt: NOW + 61_000 }],
  ])('begins the first window, which ends %s', (_case, announcement, expected) => {
    expect(windowThen(null, announcement)).toMatchObject({ limit: 60, ...expected })
  })

  it.each<[string, Window, RateHeaders | null, number, Partial<Window>]>([
    ['counts down', windowOf(), announced(60, 29), 1, { remaining: 29, ours: 31, endsAt: NOW + 20_000 }],
    [
      'begins one by a jump',
      windowOf(),
      announced(60, 50),
      1,
      { remaining: 50, ours: 10, endsAt: NOW + 60_250 },
    ],
    [
      'begins a window by its first count',
      windowOf({ remaining: 59, ours: 1 }),
      announced(60, 59),
      8,
      { remaining: 59, ours: 1, endsAt: NOW + 60_250 },
    ],
    ['is no jump when so many are in flight', windowOf(), announced(60, 34), 4, { remaining: 30, ours: 31 }],
    ['that announces nothing counts as one of ours', windowOf(), NOTHING, 1, { remaining: 29, ours: 31 }],
    ['that never came counts as one of ours', windowOf(), null, 1, { remaining: 29, ours: 31 }],
    [
      'that announces half is one of ours',
      windowOf(),
      { ...NOTHING, remaining: 5 },
      1,
      { remaining: 29, ours: 31 },
    ],
    ['that announces a limit of 0 is ours', windowOf(), announced(0, 0), 1, { remaining: 29, ours: 31 }],
    ['never leaves less than 0', windowOf({ remaining: 0 }), NOTHING, 1, { remaining: 0, ours: 31 }],
  ])('%s', (_case, window, announcement, inFlight, expected) => {
    expect(windowThen(window, announcement, inFlight)).toMatchObject(expected)
  })

  it.each<[string, Window | null, RateHeaders | null, Partial<Window>]>([
    ['counts when it left after the last window', null, announced(60, 20), { remaining: 20, ours: 31 }],
    ['counts, too, if it announces nothing then', null, NOTHING, { remaining: 29, ours: 31 }],
    ['changes nothing if it announces nothing and left before', windowOf({ endsAt: NOW - 1 }), NOTHING, {}],
    ['changes nothing if it left after the last window and never came', null, null, {}],
    [
      'counts when it has jumped as well',
      windowOf({ remaining: 5, endsAt: NOW - 1 }),
      announced(60, 28),
      { remaining: 28, ours: 31 },
    ],
    [
      'changes nothing if it may belong to the window before',
      windowOf({ remaining: 25, endsAt: NOW - 1 }),
      announced(60, 24),
      {},
    ],
  ])('that comes in a later window %s', (_case, before, announcement, expected) => {
    const window = windowAfter(windowOf(), { at: NOW, leftIn: before, announced: announcement }, 1)

    expect(window).toEqual({ ...windowOf(), ...expected })
  })

  it.each<[string, RateHeaders, number]>([
    ['shows nothing of the next window', announced(60, 3), 3],
    ['begins the next one if the counter has jumped', announced(60, 59), 59],
  ])('that left in a window which is over %s', (_case, announcement, remaining) => {
    const over = windowOf({ remaining: 3, endsAt: NOW - 1 })

    const window = windowAfter(over, { at: NOW, leftIn: over, announced: announcement }, 1)

    expect(window?.remaining).toBe(remaining)
    expect(window === over).toBe(remaining === 3)
  })

  it('with a limit of 0 announces no window', () => {
    expect(windowThen(null, announced(0, 0, 60_000))).toBeNull()
  })
})

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
    ['shows the lesser, even if it is the later', 57, 60, 57],
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
