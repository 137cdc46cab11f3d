import { describe, expect, it } from 'vitest'
import { afterAnswer, afterThrottle } from '../../src/api/rate-answer.ts'
import { type Budget, isHeard } from '../../src/api/rate-budget.ts'
import type { Announcement } from '../../src/api/rate-headers.ts'
import { NOT_MEASURED } from '../../src/api/rate-unannounced.ts'
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

  it('that asks to be left alone closes the gate for everybody, for exactly so long', () => {
    const failed = answered({ ...NOTHING, retryAfterMs: 5000 })

    expect(failed).toMatchObject({ closedUntil: NOW + 5000, throttled: 0 })
    expect(answered({ ...NOTHING, retryAfterMs: 0 }).closedUntil).toBe(0)
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

describe('the first answer after a 429 that announces nothing', () => {
  const measured = { ...NOT_MEASURED, count: 60, firstAt: NOW - MINUTE, measured: 60 }
  const reopened = { throttled: 1, throttledAt: NOW - 50_000, closedUntil: NOW - 1, unannounced: measured }

  it('tells a limit, after the second one, and begins a window of it', () => {
    const after = answered(NOTHING, reopened)

    expect(after.unannounced).toMatchObject({ limit: 60, learnedAt: NOW })
    expect(after.window).toMatchObject({ limit: 60, remaining: 59, endsAt: NOW + MINUTE + 250 })
  })

  it.each<[string, Announcement | null, Partial<Budget>]>([
    ['that announces one', told(60, 59), {}],
    ['that never came', null, {}],
    ['after which it was open for a while', NOTHING, { throttled: 0 }],
  ])('tells no limit where it is one %s', (_case, announcement, changed) => {
    expect(answered(announcement, { ...reopened, ...changed }).unannounced.limit).toBeNull()
  })

  it('forgets what was learned as soon as a limit is announced', () => {
    expect(answered(told(60, 59), { unannounced: { ...measured, limit: 60 } }).unannounced).toEqual(
      NOT_MEASURED,
    )
  })
})
