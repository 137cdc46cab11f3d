import { describe, expect, it } from 'vitest'
import {
  afterAnswer,
  afterReport,
  afterThrottle,
  type Budget,
  type Report,
} from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import { NOT_MEASURED } from '../../../src/api/rate/window.ts'
import {
  announced,
  budgetWith,
  DAY,
  flightOf,
  MINUTE,
  NOTHING,
  NOW,
  RULES,
  SECOND,
  windowOf,
} from '../helpers/budgets.ts'

function answered(announcement: RateHeaders | null, budget: Partial<Budget> = {}): Budget {
  return afterAnswer(budgetWith(budget), { at: NOW, leftIn: null, announced: announcement })
}

describe('an answer', () => {
  it.each<[string, RateHeaders, number]>([
    ['a day and no longer', announced(60, 0, DAY), DAY],
    ['a moment more than a minute', announced(60, 0, MINUTE + 1), MINUTE + 1 + SECOND],
  ])('that leaves nothing for longer than a minute is a pause: %s', (_case, announcement, wait) => {
    expect(answered(announcement).closedUntil).toBe(NOW + wait)
  })

  it.each<[string, RateHeaders]>([
    ['leaves nothing for a minute', announced(60, 0, MINUTE)],
    ['leaves something for an hour', announced(60, 1, 60 * MINUTE)],
    ['leaves nothing of no limit for a day', announced(0, 0, DAY)],
  ])('that %s is no pause', (_case, announcement) => {
    expect(answered(announcement).closedUntil).toBe(0)
  })

  it('that asks for a pause closes the budget for exactly so long', () => {
    const failed = answered({ ...NOTHING, retryAfterMs: 5000 })

    expect(failed).toMatchObject({ closedUntil: NOW + 5000, throttled: 0 })
    expect(answered({ ...NOTHING, retryAfterMs: 0 }).closedUntil).toBe(0)
  })

  it('ends a row of 429s, unless it never came', () => {
    expect(answered(NOTHING, { throttled: 3 }).throttled).toBe(0)
    expect(answered(null, { throttled: 3 }).throttled).toBe(3)
  })

  it.each([NOTHING, null])('ends the silence, unless its request left before a pause: %o', (announcement) => {
    expect(answered(announcement, { heardAt: 0 }).heardAt).toBe(NOW)
    expect(answered(announcement, { heardAt: 0, closedUntil: NOW + 1 }).heardAt).toBe(0)
  })
})

function throttled(announcement: Partial<RateHeaders>, budget: Partial<Budget> = {}, jitterMs = 345): Budget {
  const answer = { at: NOW, throttled: { ...NOTHING, ...announcement }, jitterMs }
  return afterThrottle(budgetWith(budget), answer, RULES)
}

describe('a 429', () => {
  it.each<[string, Partial<RateHeaders>, Partial<Budget>, number]>([
    ['its reset', { resetMs: 10_000 }, {}, 10_000],
    ['nothing, when it says 0', { retryAfterMs: 0 }, {}, 0],
    ['the fallback, when it says nothing', {}, {}, 60_000],
    ['2 seconds, when the second in a row says 0', { retryAfterMs: 0 }, { throttled: 1 }, 2000],
    ['the fallback, when the hundredth in a row says 0', { retryAfterMs: 0 }, { throttled: 99 }, 60_000],
  ])('closes the budget for %s, and a second with jitter', (_case, announcement, before, wait) => {
    const after = throttled(announcement, before)

    expect(after).toMatchObject({ window: null, throttledAt: NOW, closedUntil: NOW + wait + 1345 })
    expect(after.throttled).toBe((before.throttled ?? 0) + 1)
  })

  it('waits for the end of a window that is later than the fallback', () => {
    const window = windowOf({ endsAt: NOW + 40_000 })
    const answer = { at: NOW, throttled: NOTHING, jitterMs: 0 }

    const after = afterThrottle(budgetWith({ window }), answer, { ...RULES, fallbackWaitMs: 5000 })

    expect(after.closedUntil).toBe(NOW + 41_000)
  })

  it('of several in flight together neither lengthens the pause nor shortens it', () => {
    const first = throttled({ retryAfterMs: 5000 }, {}, 900)

    const rest = throttled({ retryAfterMs: 5000 }, first, 0)

    expect(rest).toEqual(first)
    expect(rest).toMatchObject({ closedUntil: NOW + 6900, throttled: 1 })
  })
})

describe('the first answer after a 429 that announces nothing', () => {
  const measured = { ...NOT_MEASURED, count: 60, firstAt: NOW - MINUTE, measured: 60 }
  const reopened = { throttled: 1, throttledAt: NOW - 50_000, closedUntil: NOW - 1, learned: measured }

  it('shows a limit after the second 429, and begins a window of it', () => {
    const after = answered(NOTHING, reopened)

    expect(after.learned).toMatchObject({ limit: 60, learnedAt: NOW })
    expect(after.window).toMatchObject({ limit: 60, remaining: 59, endsAt: NOW + MINUTE + 250 })
  })

  it.each<[string, RateHeaders | null, Partial<Budget>]>([
    ['that announces one', announced(60, 59), {}],
    ['after which it was open for a while', NOTHING, { throttled: 0 }],
  ])('shows no limit if it is one %s', (_case, announcement, changed) => {
    expect(answered(announcement, { ...reopened, ...changed }).learned.limit).toBeNull()
  })
})

const REPORT: Report = { by: 'this one', inFlight: 0, answers: [], unannounced: [] }

describe('what a process reports', () => {
  it('holds the number of its requests in flight', () => {
    const budget = budgetWith({ inFlight: [flightOf({ by: 'this one', count: 5 }), flightOf()] })

    expect(afterReport(budget, { ...REPORT, inFlight: 2 }, RULES, NOW).inFlight).toEqual([
      flightOf(),
      flightOf({ by: 'this one', count: 2 }),
    ])
    expect(afterReport(budget, REPORT, RULES, NOW).inFlight).toEqual([flightOf()])
  })

  it.each([
    [12, { remaining: 9, ours: 53 }],
    [13, { remaining: 13, ours: 47 }],
  ])(
    'is no jump of the counter if it rises by no more than were in flight together: to %i',
    (first, expected) => {
      const leftIn = windowOf({ remaining: 9, ours: 50 })
      const answers = [first, 11, 10].map((remaining) => ({
        at: NOW,
        leftIn,
        announced: announced(60, remaining),
      }))

      const after = afterReport(budgetWith({ window: leftIn }), { ...REPORT, answers }, RULES, NOW)

      expect(after.window).toMatchObject(expected)
    },
  )
})

describe('answers that announce nothing', () => {
  const unannounced = [NOW - MINUTE, NOW - 5, NOW - 4]

  it('are counted during the pause after a 429', () => {
    const closed = budgetWith({ throttled: 1, throttledAt: NOW, closedUntil: NOW + MINUTE })

    const after = afterReport(closed, { ...REPORT, unannounced }, RULES, NOW)

    expect(after.learned).toMatchObject({ count: 2, firstAt: NOW - 5 })
  })

  it.each<[string, Partial<Budget>]>([
    ['without a pause', {}],
    ['during a pause without a 429', { closedUntil: NOW + MINUTE }],
    ['once the pause is over', { throttled: 1, throttledAt: NOW - MINUTE, closedUntil: NOW }],
  ])('are not %s', (_case, budget) => {
    expect(afterReport(budgetWith(budget), { ...REPORT, unannounced }, RULES, NOW).learned.count).toBe(0)
  })
})
