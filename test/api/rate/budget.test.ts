import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterAnswer,
  afterThrottle,
  allowedPerMinute,
  asOfNow,
  type Budget,
  FRESH,
  type RateRules,
  waitFor,
  withPermit,
} from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import type { Urgency } from '../../../src/sync/types.ts'
import { announced, DAY, MINUTE, NOTHING, NOW, RULES, SECOND } from '../helpers/budgets.ts'

type Window = NonNullable<Budget['window']>

const BEGUN = NOW - 40 * SECOND
const LIMIT = "the server's limit of 60 requests a minute"
const PAUSE = 'the server asked for a pause'

/** A budget that answers have been heard of. */
const HEARD: Budget = { ...FRESH, aloneUntil: null }

function windowOf(changed: Partial<Window> = {}): Window {
  return { begunAt: BEGUN, endsAt: NOW + 20 * SECOND, limit: 60, left: 30, ...changed }
}

function waitOf(budget: Partial<Budget>, changed: Partial<RateRules> = {}, urgency: Urgency = 'walk') {
  const rules = { ...RULES, ...changed }
  const wait = waitFor(asOfNow({ ...HEARD, ...budget }, rules, NOW), rules, NOW, urgency)
  return wait && [wait.until - NOW, wait.reason]
}

describe('the next request', () => {
  it.each<[string, Partial<Budget>, [number, string] | null]>([
    ['goes at once when nothing is known', {}, null],
    ['goes at once while the window has some left', { window: windowOf({ left: 1 }) }, null],
    ['waits for the end of a window that has none left', { window: windowOf({ left: 0 }) }, [20_000, LIMIT]],
    ['goes at once when the window has ended', { window: windowOf({ left: 0, endsAt: NOW }) }, null],
    [
      'waits where the window of the server may have ended before ours',
      { window: windowOf({ endsAt: NOW + 500 }) },
      [500, LIMIT],
    ],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, [5000, PAUSE]],
    [
      'waits for what takes longest',
      { closedUntil: NOW + 5000, window: windowOf({ left: 0 }) },
      [20_000, LIMIT],
    ],
    ['is the first', { aloneUntil: 0 }, null],
    [
      'waits for the answer to the first',
      { aloneUntil: NOW + 1 },
      [Number.POSITIVE_INFINITY, 'a first answer'],
    ],
    ['does not wait for a first answer that does not come', { aloneUntil: NOW }, null],
  ])('%s', (_case, budget, wait) => {
    expect(waitOf(budget)).toEqual(wait)
  })

  it.each<[string, number, [number, number][], number | null]>([
    ['goes at once where one fewer was sent than it allows', 3, [[-50_000, 2]], null],
    [
      'goes when a place is free',
      3,
      [
        [-50_000, 1],
        [-40_000, 1],
        [-20_000, 2],
      ],
      21_000,
    ],
    ['waits for nothing older than that', 1, [[-61_000, 1]], null],
    ['goes two minutes after the last one at 0.5', 0.5, [[-100_000, 1]], 21_000],
    ['takes the whole part of 1.9', 1.9, [[-50_000, 1]], 11_000],
  ])('under a ceiling of our own %s', (_case, requestsPerMinute, sent, wait) => {
    const waited = waitOf({ sent: sent.map(([age, count]) => [NOW + age, count]) }, { requestsPerMinute })

    expect(waited?.[0] ?? null).toBe(wait)
  })

  // 6 of 60 are the refreshes' part: one in 10 seconds.
  it.each<[string, Urgency, Partial<Budget>, Partial<RateRules>, number | null]>([
    ['waits until its part is released', 'walk', { window: windowOf({ left: 1 }) }, {}, 10_000],
    ['may be an older page', 'older', { window: windowOf({ left: 1 }) }, {}, 10_000],
    ['goes where more is released', 'walk', { window: windowOf({ left: 2 }) }, {}, null],
    ['goes if it is a refresh', 'refresh', { window: windowOf({ left: 1 }) }, {}, null],
    [
      'goes at the end of the window',
      'walk',
      { window: windowOf({ left: 1, endsAt: NOW + 9_999 }) },
      {},
      null,
    ],
    [
      'goes where refreshes have no part',
      'walk',
      { window: windowOf({ left: 1 }) },
      { refreshPercent: 0 },
      null,
    ],
    ['goes a minute later', 'walk', { window: windowOf({ left: 1 }), refreshedAt: NOW - MINUTE }, {}, null],
    [
      'waits under a ceiling of our own, too',
      'walk',
      { sent: [[NOW - 41_000, 59]] },
      { requestsPerMinute: 60 },
      10_000,
    ],
  ])('beside refreshes %s', (_case, urgency, budget, rules, wait) => {
    expect(waitOf({ refreshedAt: NOW - 1, ...budget }, rules, urgency)?.[0] ?? null).toBe(wait)
  })

  it('never waits longer than a minute, or its pause, whatever the clock was', () => {
    const times = fc.integer({ min: NOW - 2 * DAY, max: NOW + 2 * DAY })
    const counts = fc.integer({ min: 0, max: 5 })
    const windows = fc.record({ begunAt: times, endsAt: times, left: counts })
    const budgets = fc.record({
      sent: fc.array(fc.tuple(times, counts), { maxLength: 5 }),
      window: fc.option(windows.map((changed) => windowOf({ ...changed, limit: 5 }))),
      closedUntil: times,
      refreshedAt: times,
    })
    fc.assert(
      fc.property(budgets, fc.option(fc.constantFrom(1, 1.5, 3)), (budget, requestsPerMinute) => {
        const sent = budget.sent.toSorted(([one], [other]) => one - other)
        const [until = 0, reason] = waitOf({ ...budget, sent }, { requestsPerMinute }) ?? []

        expect(until).toBeLessThanOrEqual(reason === PAUSE ? DAY : 2 * MINUTE + SECOND)
      }),
      { numRuns: 2000 },
    )
  })

  it('is alone again where others may have used the budget for a minute', () => {
    const before = { ...HEARD, window: windowOf({ endsAt: NOW }) }
    const later = [MINUTE - 1, MINUTE].map((ms) => asOfNow(before, RULES, NOW + ms).aloneUntil)

    expect(later).toEqual([null, 0])
  })
})

describe('a permit', () => {
  it('counts in half seconds under a ceiling of our own, and not without one', () => {
    const rules = { ...RULES, requestsPerMinute: 60 }
    const times = [NOW + 1, NOW + 500, NOW + 501]

    const { sent } = times.reduce((budget, at) => withPermit(budget, rules, at, 'walk'), HEARD)

    expect(sent).toEqual([
      [NOW + 500, 2],
      [NOW + 1000, 1],
    ])
    expect(withPermit(HEARD, RULES, NOW, 'walk')).toEqual(HEARD)
  })

  it('begins the window that follows one that has ended', () => {
    const rules = { ...RULES, sharePercent: 50 }
    const before = asOfNow({ ...HEARD, window: windowOf({ endsAt: NOW }) }, rules, NOW)

    const { window } = withPermit(before, rules, NOW, 'walk')

    expect(window).toEqual({ begunAt: NOW, endsAt: NOW + 70_000, limit: 60, left: 29 })
  })

  it('before the first answer keeps the others waiting, and after it does not', () => {
    const left = withPermit(FRESH, RULES, NOW, 'refresh')

    expect(left).toMatchObject({ aloneUntil: NOW + 10_000, refreshedAt: NOW })
    const aloneAfter = (one: RateHeaders | null) =>
      afterAnswer(left, { at: NOW, windowAt: null, announced: one }, RULES).aloneUntil
    expect([aloneAfter(NOTHING), aloneAfter(null)]).toEqual([null, 0])
  })
})

function answered(
  announcement: RateHeaders | null,
  window: Window | null = null,
  windowAt: number | null = window && BEGUN,
): Budget {
  return afterAnswer({ ...HEARD, window }, { at: NOW, windowAt, announced: announcement }, RULES)
}

describe('an answer', () => {
  it('that is the first shows a window, in which what was used counts as ours', () => {
    const expected = { begunAt: NOW, endsAt: NOW + 60_250, limit: 60, left: 50 }
    const answer = { at: NOW, windowAt: null, announced: announced(60, 50) }

    expect(answered(announced(60, 50)).window).toEqual(expected)
    expect(answered(announced(60, 50, 12_000)).window?.endsAt).toBe(NOW + 13_000)
    expect(answered(announced(0, 0)).window).toBeNull()
    expect(afterAnswer(FRESH, answer, { ...RULES, sharePercent: 50 }).window?.left).toBe(20)
  })

  const wasFirst = { endsAt: BEGUN + 70_000 + 60_000 }

  it.each<[string, Partial<Window>, RateHeaders | null, number | null, Partial<Window>]>([
    ['lowers what is left', {}, announced(60, 20), BEGUN, { left: 20 }],
    ['in another order raises nothing', {}, announced(60, 32), BEGUN, { left: 30 }],
    ['that never came changes nothing', {}, null, BEGUN, {}],
    ['that announces nothing changes nothing', {}, NOTHING, BEGUN, {}],
    ['from an earlier window says nothing', {}, announced(60, 0), BEGUN - 1, {}],
    ['of a time when no window was known lowers what is left', {}, announced(60, 20), null, { left: 20 }],
    [
      'that is the first says when the window ends',
      wasFirst,
      announced(60, 50),
      BEGUN,
      { endsAt: NOW + 60_250 },
    ],
    ['is later than the first one', {}, announced(60, 50), BEGUN, { endsAt: NOW + 20_000 }],
    ['of a window that nobody has begun says nothing', { begunAt: 0 }, announced(60, 0), BEGUN, {}],
    ['after the end of its window says nothing', { endsAt: NOW }, announced(60, 0), BEGUN, {}],
  ])('%s', (_case, window, announcement, windowAt, changed) => {
    const before = windowOf(window)

    expect(answered(announcement, before, windowAt).window).toEqual({ ...before, ...changed })
  })

  it.each<[string, RateHeaders, number]>([
    ['leaves nothing for a day', announced(60, 0, DAY), DAY],
    ['leaves nothing for more than a minute', announced(60, 0, MINUTE + 1), MINUTE + 1 + SECOND],
    ['leaves nothing for a minute', announced(60, 0, MINUTE), 0],
    ['leaves something for an hour', announced(60, 1, 60 * MINUTE), 0],
    ['leaves nothing of no limit for a day', announced(0, 0, DAY), 0],
    ['asks for a pause', { ...NOTHING, retryAfterMs: 5000 }, 5000],
  ])('that %s closes the budget for so long', (_case, announcement, wait) => {
    expect(answered(announcement).closedUntil).toBe(wait === 0 ? 0 : NOW + wait)
  })

  it('ends a row of 429s, unless it never came', () => {
    const inARow = [NOTHING, null].map(
      (one) =>
        afterAnswer({ ...HEARD, throttled: 3 }, { at: NOW, windowAt: null, announced: one }, RULES).throttled,
    )

    expect(inARow).toEqual([0, 3])
  })

  it('of a server that fails, to a request that left before a 429, makes the pause as long as it says', () => {
    const closed = { ...FRESH, throttled: 1, closedUntil: NOW + 1 }
    const failed = { at: NOW, windowAt: null, announced: { ...NOTHING, retryAfterMs: 5000 } }

    expect(afterAnswer(closed, failed, RULES)).toEqual({ ...closed, closedUntil: NOW + 5000 })
  })

  it('of a request that left before the 429 changes nothing', () => {
    const closed = { ...FRESH, throttled: 1, closedUntil: NOW + 1 }

    expect(afterAnswer(closed, { at: NOW, windowAt: null, announced: announced(60, 59) }, RULES)).toEqual(
      closed,
    )
  })
})

function throttled(announcement: Partial<RateHeaders>, budget: Partial<Budget> = {}, jitterMs = 345): Budget {
  return afterThrottle({ ...HEARD, ...budget }, { ...NOTHING, ...announcement }, RULES, NOW, jitterMs)
}

describe('a 429', () => {
  it.each<[string, Partial<RateHeaders>, Partial<Budget>, number]>([
    ['its reset', { resetMs: 10_000 }, {}, 10_000],
    ['nothing, when it says 0', { retryAfterMs: 0 }, {}, 0],
    ['the fallback, when it says nothing', {}, {}, 60_000],
    [
      'the rest of a longer window, when it says nothing',
      {},
      { window: windowOf({ endsAt: NOW + 61_000 }) },
      61_000,
    ],
    ['2 seconds, when the second in a row says 0', { retryAfterMs: 0 }, { throttled: 1 }, 2000],
    ['the fallback, when the hundredth in a row says 0', { retryAfterMs: 0 }, { throttled: 99 }, 60_000],
  ])('closes the budget for %s, and a second with jitter', (_case, announcement, before, wait) => {
    expect(throttled(announcement, before)).toMatchObject({
      aloneUntil: 0,
      window: before.window ? { begunAt: 0, limit: 60, left: 60 } : null,
      closedUntil: NOW + wait + 1345,
      throttled: (before.throttled ?? 0) + 1,
    })
  })

  it('of several in flight together neither lengthens the pause nor shortens it', () => {
    const first = throttled({ retryAfterMs: 5000 }, {}, 900)

    expect(throttled({ retryAfterMs: 5000 }, first, 0)).toEqual(first)
    expect(first).toMatchObject({ closedUntil: NOW + 6900, throttled: 1 })
  })
})

it.each([
  [{}, null],
  [{ requestsPerMinute: 300 }, 300],
  [{ requestsPerMinute: 0.5 }, 0.5],
  [{ requestsPerMinute: 1.5 }, 1],
  [{ limit: 60 }, 60],
  [{ limit: 60, requestsPerMinute: 30 }, 30],
  [{ limit: 60, requestsPerMinute: 300 }, 60],
  [{ limit: 60, sharePercent: 50 }, 30],
  // A share of almost nothing still lets one through.
  [{ limit: 60, sharePercent: 1 }, 1],
])('requests a minute that are allowed by %j: %s', (changed, allowed) => {
  const { limit, ...rules } = { requestsPerMinute: null, limit: null, sharePercent: 100, ...changed }

  expect(allowedPerMinute(limit, rules)).toBe(allowed)
})
