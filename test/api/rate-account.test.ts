import { describe, expect, it } from 'vitest'
import { afterAnswer, afterThrottle, type Report, settle, take } from '../../src/api/rate-account.ts'
import { type Budget, isHeard } from '../../src/api/rate-budget.ts'
import type { Announcement } from '../../src/api/rate-headers.ts'
import {
  blockOf,
  budgetWith,
  DAY,
  MINUTE,
  NOTHING,
  NOW,
  RULES,
  SECOND,
  told,
  windowOf,
} from './helpers/budgets.ts'

const REPORT: Report = { by: 'this one', sent: [], answers: [], inFlight: 0 }
const OWN = blockOf({ by: 'this one', count: 5, inFlight: 2 })

function answered(announcement: Announcement | null, budget: Partial<Budget> = {}): Budget {
  return afterAnswer(budgetWith(budget), { at: NOW, leftIn: null, told: announcement }, 1)
}

describe('an answer', () => {
  it.each<[string, Announcement, number]>([
    ['an hour', told(60, 0, 60 * MINUTE), 60 * MINUTE + SECOND],
    ['a day and no longer', told(60, 0, DAY), DAY],
    ['a moment more than a minute', told(60, 0, MINUTE + 1), MINUTE + 1 + SECOND],
  ])('that leaves nothing for longer than a minute is a pause: %s', (_case, announcement, wait) => {
    expect(answered(announcement).closedUntil).toBe(NOW + wait)
  })

  it.each<[string, Announcement]>([
    ['leaves nothing for a minute', told(60, 0, MINUTE)],
    ['leaves something for an hour', told(60, 1, 60 * MINUTE)],
    ['leaves nothing of no limit for a day', told(0, 0, DAY)],
  ])('that %s is no pause', (_case, announcement) => {
    expect(answered(announcement).closedUntil).toBe(0)
  })

  it('is compared with what all processes have on their way', () => {
    const window = windowOf()
    const blocks = [blockOf({ count: 2 }), blockOf({ by: 'a third', count: 0, inFlight: 1 })]
    const risen = { at: NOW, leftIn: window, told: told(60, 34) }

    expect(afterAnswer(budgetWith({ window, blocks }), risen, 1).window).toMatchObject({
      remaining: 30,
      ours: 31,
    })
    expect(afterAnswer(budgetWith({ window }), risen, 1).window).toMatchObject({ remaining: 34, ours: 26 })
  })

  it('ends a row of 429s, and none at all does not', () => {
    expect(answered(NOTHING, { throttled: 3 }).throttled).toBe(0)
    expect(answered(null, { throttled: 3 }).throttled).toBe(3)
  })

  it.each([NOTHING, null])('lets the others go, unless it left before a pause: %o', (announcement) => {
    expect(answered(announcement, { heardAt: 0 }).heardAt).toBe(NOW)
    expect(answered(announcement, { heardAt: 0, closedUntil: NOW + 1 }).heardAt).toBe(0)
  })

  it('that left before a pause says nothing of the window', () => {
    expect(answered(told(60, 3), { window: windowOf(), closedUntil: NOW + 1 }).window).toEqual(windowOf())
  })
})

function throttled(
  announcement: Partial<Announcement>,
  budget: Partial<Budget> = {},
  jitterMs = 345,
): Budget {
  const answer = { at: NOW, throttled: { ...NOTHING, ...announcement }, jitterMs }
  return afterThrottle(budgetWith(budget), answer, RULES)
}

describe('a 429', () => {
  it.each<[string, Partial<Announcement>, Partial<Budget>, number]>([
    ['what it says', { retryAfterMs: 30_000 }, {}, 30_000],
    ['what it says before its reset', { retryAfterMs: 30_000, resetMs: 10_000 }, {}, 30_000],
    ['its reset', { resetMs: 10_000 }, {}, 10_000],
    ['nothing, when it says 0', { retryAfterMs: 0 }, {}, 0],
    ['the fallback, when it says nothing', {}, {}, 60_000],
    ['the fallback, when the window ends before', {}, { window: windowOf() }, 60_000],
    ['2 seconds, when the second in a row says 0', { retryAfterMs: 0 }, { throttled: 1 }, 2000],
    ['4 seconds, when the third in a row says 0', { retryAfterMs: 0 }, { throttled: 2 }, 4000],
    ['the fallback, when the hundredth in a row says 0', { retryAfterMs: 0 }, { throttled: 99 }, 60_000],
    ['what it says, when that is longer', { retryAfterMs: 90_000 }, { throttled: 9 }, 90_000],
  ])('closes the gate for %s, and a second with jitter', (_case, announcement, before, wait) => {
    const after = throttled(announcement, before)

    expect(after).toMatchObject({ window: null, throttledAt: NOW, closedUntil: NOW + wait + 1345 })
    expect(after.throttled).toBe((before.throttled ?? 0) + 1)
  })

  it('lets the next request go alone', () => {
    const after = throttled({ retryAfterMs: 0 }, { heardAt: NOW })

    expect(isHeard(after, NOW)).toBe(false)
  })

  it('closes the gate for a day at most', () => {
    expect(throttled({ retryAfterMs: DAY }, {}, 999).closedUntil).toBe(NOW + DAY)
  })

  it('waits for the end of a window that is later than the fallback', () => {
    const window = windowOf({ endsAt: NOW + 40_000 })
    const answer = { at: NOW, throttled: NOTHING, jitterMs: 0 }

    const after = afterThrottle(budgetWith({ window }), answer, { ...RULES, fallbackWaitMs: 5000 })

    expect(after.closedUntil).toBe(NOW + 41_000)
  })

  it('of several that were in flight together grows no pause, and shortens none', () => {
    const first = throttled({ retryAfterMs: 5000 }, {}, 900)

    const rest = throttled({ retryAfterMs: 5000 }, first, 0)

    expect(rest).toEqual(first)
    expect(rest).toMatchObject({ closedUntil: NOW + 6900, throttled: 1 })
  })
})

describe('a process that accounts for its block', () => {
  it('gives back what it has not sent, and keeps what is on its way', () => {
    const budget = budgetWith({ blocks: [OWN, blockOf()] })

    const { blocks } = settle(budget, { ...REPORT, inFlight: 1 }, RULES, NOW)

    expect(blocks).toEqual([blockOf(), { ...OWN, count: 0, inFlight: 1 }])
  })

  it('leaves nothing behind when nothing is on its way', () => {
    expect(settle(budgetWith({ blocks: [OWN] }), REPORT, RULES, NOW).blocks).toEqual([])
  })

  it('tells when its requests left, where a ceiling of our own asks for it', () => {
    const report = { ...REPORT, sent: [NOW - 1, NOW] }

    expect(settle(budgetWith(), report, { ...RULES, requestsPerMinute: 10 }, NOW).sent).toEqual([[NOW, 2]])
    expect(settle(budgetWith(), report, RULES, NOW).sent).toEqual([])
  })

  it('tells its answers in the order in which they came', () => {
    const answers = [
      { at: NOW, leftIn: null, told: told(60, 20) },
      { at: NOW, throttled: { ...NOTHING, retryAfterMs: 5000 }, jitterMs: 0 },
    ]

    const after = settle(budgetWith(), { ...REPORT, answers }, RULES, NOW)

    expect(after).toMatchObject({ window: null, throttled: 1, closedUntil: NOW + 6000 })
  })

  it('takes a counter that rises by as many as are told together for no jump', () => {
    const leftIn = windowOf({ remaining: 10, ours: 50 })
    const answers = [12, 11, 10].map((remaining) => ({ at: NOW, leftIn, told: told(60, remaining) }))

    const after = settle(budgetWith({ window: leftIn }), { ...REPORT, answers }, RULES, NOW)

    expect(after.window).toEqual({ ...leftIn, ours: 53 })
  })
})

describe('a block', () => {
  const take5 = { ...RULES, requestsPerMinute: 5 }

  it.each<[string, Partial<Budget>, Partial<typeof RULES>, number[]]>([
    [
      'holds all that is left for a process that is alone',
      { window: windowOf({ remaining: 4 }) },
      {},
      [0, 0, 0, 0],
    ],
    [
      'holds a third of it beside others, and one at the least',
      { window: windowOf({ remaining: 8 }), blocks: [blockOf({ count: 4 })] },
      {},
      [0, 0],
    ],
    ['holds one where nothing was heard', { heardAt: 0, window: windowOf({ remaining: 4 }) }, {}, [0]],
    ['holds nothing while the gate is closed', { closedUntil: NOW + 1 }, take5, []],
    [
      'holds no more than 25',
      { window: windowOf({ remaining: 60 }) },
      {},
      Array.from({ length: 25 }, () => 0),
    ],
    [
      'holds what our own ceiling allows within five seconds',
      {
        sent: [
          [NOW - 60_000, 2],
          [NOW - 55_250, 1],
          [NOW - 55_249, 2],
        ],
      },
      take5,
      [250, 250, 5000],
    ],
  ])('%s', (_case, budget, rules, waits) => {
    const { permits } = take(budgetWith(budget), REPORT, { ...RULES, ...rules }, NOW)

    expect(permits.from.map((at) => at - NOW)).toEqual(waits)
  })

  it.each<[string, number, number]>([
    ['ten seconds', 20_000, 10_000],
    ['no longer than its window', 3000, 3000],
  ])('is good for %s', (_case, windowMs, lasts) => {
    const window = windowOf({ endsAt: NOW + windowMs })

    const { budget, permits } = take(budgetWith({ window }), { ...REPORT, inFlight: 2 }, RULES, NOW)

    expect(permits.until).toBe(NOW + lasts)
    expect(budget.blocks).toEqual([{ by: 'this one', count: 25, until: NOW + lasts, inFlight: 2 }])
  })
})
