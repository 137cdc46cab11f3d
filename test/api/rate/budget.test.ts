import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterAnswer,
  afterThrottle,
  asOfNow,
  type Budget,
  ceilingOf,
  FRESH,
  type RateRules,
  waitFor,
  withPermit,
} from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import { announced, DAY, MINUTE, NOTHING, NOW, RULES, SECOND } from '../helpers/budgets.ts'

type Window = NonNullable<Budget['window']>

const BEGUN = NOW - 40 * SECOND
const LIMIT = "the server's limit of 60 requests a minute"

function windowOf(changed: Partial<Window> = {}): Window {
  const whole = { begunAt: BEGUN, endsAt: NOW + 20 * SECOND, isHeard: true, limit: 60, unanswered: 0 }
  return { ...whole, remaining: 30, ours: 30, ...changed }
}

function waitOf(budget: Partial<Budget>, rules: Partial<RateRules> = {}, inFlight = 0) {
  const all = { ...RULES, ...rules }
  const wait = waitFor(asOfNow({ ...FRESH, ...budget }, all, NOW), all, NOW, inFlight)
  return wait && [wait.until - NOW, wait.reason]
}

describe('the next request', () => {
  it.each<[string, Partial<Budget>, Partial<RateRules>, [number, string] | null]>([
    ['goes at once when nothing is known', {}, {}, null],
    ['goes at once while the window has some left', { window: windowOf({ remaining: 1 }) }, {}, null],
    [
      'waits for the end of a window that has none left',
      { window: windowOf({ remaining: 0 }) },
      {},
      [20_000, LIMIT],
    ],
    [
      'waits when what is left is on its way',
      { window: windowOf({ remaining: 3, unanswered: 3 }) },
      {},
      [20_000, LIMIT],
    ],
    ['goes at once when the window has ended', { window: windowOf({ remaining: 0, endsAt: NOW }) }, {}, null],
    ['goes at once within our share', { window: windowOf({ ours: 29 }) }, { sharePercent: 50 }, null],
    [
      'waits when our share is used up',
      { window: windowOf({ ours: 30 }) },
      { sharePercent: 50 },
      [20_000, LIMIT],
    ],
    [
      'waits when others have used theirs and ours',
      { window: windowOf({ ours: 1, remaining: 0 }) },
      { sharePercent: 50 },
      [20_000, LIMIT],
    ],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, {}, [5000, 'the server asked for a pause']],
    [
      'waits for what takes longest',
      { closedUntil: NOW + 5000, window: windowOf({ remaining: 0 }) },
      {},
      [20_000, LIMIT],
    ],
  ])('%s', (_case, budget, rules, wait) => {
    expect(waitOf(budget, rules)).toEqual(wait)
  })

  it('after a 429 waits for the answer of one that has left', () => {
    expect(waitOf({ throttled: 1 }, {}, 1)).toEqual([
      Number.POSITIVE_INFINITY,
      'a first answer after the pause',
    ])
    expect(waitOf({ throttled: 1 }, {}, 0)).toBeNull()
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
  ])('under a ceiling of our own %s', (_case, requestsPerMinute, sent, wait) => {
    const waited = waitOf({ sent: sent.map(([age, count]) => [NOW + age, count]) }, { requestsPerMinute })

    expect(waited?.[0] ?? null).toBe(wait)
  })

  it('never waits longer than a minute, or its pause, whatever the clock was', () => {
    const times = fc.integer({ min: NOW - 2 * DAY, max: NOW + 2 * DAY })
    const counts = fc.integer({ min: 0, max: 5 })
    const windows = fc.record({
      begunAt: times,
      endsAt: times,
      remaining: counts,
      ours: counts,
      unanswered: counts,
    })
    const budgets = fc.record({
      sent: fc.array(fc.tuple(times, counts), { maxLength: 5 }),
      window: fc.option(windows.map((changed) => windowOf({ ...changed, limit: 5 }))),
      closedUntil: times,
    })
    fc.assert(
      fc.property(budgets, fc.option(fc.constantFrom(1, 1.5, 3)), (budget, requestsPerMinute) => {
        const sent = budget.sent.toSorted(([one], [other]) => one - other)
        const [until = 0, reason] = waitOf({ ...budget, sent }, { requestsPerMinute }) ?? []

        expect(until).toBeLessThanOrEqual(
          reason === 'the server asked for a pause' ? DAY : 2 * MINUTE + SECOND,
        )
      }),
      { numRuns: 2000 },
    )
  })
})

it.each<[number, number, number]>([
  [300, 300, MINUTE],
  [1.999, 1, MINUTE],
  [0.7, 1, 85_715],
])('a ceiling of %s a minute is %i in %i ms', (requestsPerMinute, requests, windowMs) => {
  expect(ceilingOf(requestsPerMinute)).toEqual({ requests, windowMs })
})

describe('a permit', () => {
  it('counts in half seconds under a ceiling of our own, and not without one', () => {
    const rules = { ...RULES, requestsPerMinute: 60 }
    const times = [NOW + 1, NOW + 500, NOW + 501]

    const { sent } = times.reduce((budget, at) => withPermit(budget, rules, at), FRESH)

    expect(sent).toEqual([
      [NOW + 500, 2],
      [NOW + 1000, 1],
    ])
    expect(withPermit(FRESH, RULES, NOW)).toEqual(FRESH)
  })

  it('begins the window that follows one that has ended', () => {
    const before = asOfNow({ ...FRESH, window: windowOf({ endsAt: NOW }) }, RULES, NOW)

    expect(withPermit(before, RULES, NOW).window).toEqual({
      begunAt: NOW,
      endsAt: NOW + 60_250,
      isHeard: false,
      limit: 60,
      remaining: 60,
      ours: 1,
      unanswered: 1,
    })
  })
})

function answered(
  announcement: RateHeaders | null,
  window: Window | null = null,
  begunAt: number | null = window && BEGUN,
): Budget {
  const permit = begunAt === null ? null : { begunAt, remaining: 32 }
  return afterAnswer({ ...FRESH, window }, { at: NOW, permit, announced: announcement, inFlight: 0 })
}

/** How many 429s in a row are counted after this. */
function inARow(announcement: RateHeaders | null): number {
  const answer = { at: NOW, permit: null, announced: announcement, inFlight: 0 }
  return afterAnswer({ ...FRESH, throttled: 3 }, answer).throttled
}

describe('an answer', () => {
  it('that is the first shows a window, in which what was used counts as ours', () => {
    expect(answered(announced(60, 50)).window).toMatchObject({
      begunAt: NOW,
      endsAt: NOW + 60_250,
      remaining: 50,
      ours: 10,
      unanswered: 0,
    })
    expect(answered(announced(60, 50, 12_000)).window?.endsAt).toBe(NOW + 13_000)
    expect(answered(announced(0, 0)).window).toBeNull()
  })

  it.each<[string, Partial<Window>, RateHeaders | null, number | null, Partial<Window>]>([
    [
      'lowers what is left',
      { unanswered: 2 },
      announced(60, 20),
      BEGUN,
      { remaining: 20, unanswered: 1, ours: 30 },
    ],
    [
      'in another order raises nothing',
      { unanswered: 2 },
      announced(60, 32),
      BEGUN,
      { remaining: 30, unanswered: 1 },
    ],
    [
      'that rises by more shows a new window',
      { unanswered: 2 },
      announced(60, 33),
      BEGUN,
      { remaining: 33, ours: 27, unanswered: 1, endsAt: NOW + 60_250 },
    ],
    ['that never came may have counted', { unanswered: 1 }, null, BEGUN, { remaining: 29, unanswered: 0 }],
    [
      'that announces nothing may have counted',
      { unanswered: 1 },
      NOTHING,
      BEGUN,
      { remaining: 29, unanswered: 0 },
    ],
    [
      'from an earlier window says nothing',
      { unanswered: 1 },
      announced(60, 0),
      BEGUN - 1,
      { remaining: 30, unanswered: 1 },
    ],
    [
      'of a request that left before any window was known lowers what is left',
      {},
      announced(60, 20),
      null,
      { remaining: 20, ours: 40 },
    ],
    [
      'that is the first of its window says when that ends',
      { isHeard: false, unanswered: 1 },
      announced(60, 50),
      BEGUN,
      { isHeard: true, remaining: 50, endsAt: NOW + 60_250, ours: 30 },
    ],
    [
      'that is late says nothing of a window that nobody has begun',
      { begunAt: 0 },
      announced(60, 0),
      BEGUN,
      { begunAt: 0, remaining: 30 },
    ],
    [
      'that is late may be the first of the next',
      { begunAt: 0 },
      announced(60, 59),
      BEGUN,
      { begunAt: NOW, remaining: 59, ours: 1 },
    ],
  ])('%s', (_case, window, announcement, begunAt, expected) => {
    expect(answered(announcement, windowOf(window), begunAt).window).toMatchObject(expected)
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
    expect([inARow(NOTHING), inARow(null)]).toEqual([0, 3])
  })

  it('of a request that left before the 429 changes nothing', () => {
    const closed = { ...FRESH, throttled: 1, closedUntil: NOW + 1 }

    expect(afterAnswer(closed, { at: NOW, permit: null, announced: announced(60, 59), inFlight: 0 })).toEqual(
      closed,
    )
  })
})

function throttled(announcement: Partial<RateHeaders>, budget: Partial<Budget> = {}, jitterMs = 345): Budget {
  return afterThrottle({ ...FRESH, ...budget }, { ...NOTHING, ...announcement }, RULES, NOW, jitterMs)
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
      window: null,
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
