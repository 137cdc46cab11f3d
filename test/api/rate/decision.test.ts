import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asOfNow, type Budget, onTheirWay, type RateRules } from '../../../src/api/rate/budget.ts'
import {
  allowedPerMinute,
  averageOf,
  budgetNow,
  ceilingOf,
  decide,
  msToSend,
} from '../../../src/api/rate/decision.ts'
import { budgetWith, flightOf, MINUTE, NOW, RULES, windowOf } from '../helpers/budgets.ts'

/** Milliseconds until the next request may leave. */
function waitOf(budget: Partial<Budget>, rules: Partial<RateRules> = {}): number {
  return Math.max(0, decide(budgetWith(budget), { ...RULES, ...rules }, NOW).at - NOW)
}

/** Requests that another process has on their way. */
function onTheWay(count: number) {
  return { inFlight: [flightOf({ count })] }
}

const AFTER_ANSWER = Number.POSITIVE_INFINITY

describe('the next request', () => {
  it.each<[string, Partial<Budget>, number]>([
    ['goes at once when nothing is known', {}, 0],
    ['goes at once while the window has some left', { window: windowOf({ remaining: 1 }) }, 0],
    ['waits for the end of a window that has none left', { window: windowOf({ remaining: 0 }) }, 20_000],
    ['waits when what is left is on its way', { window: windowOf({ remaining: 3 }), ...onTheWay(3) }, 20_000],
    [
      'waits for an answer when a whole new window is on its way',
      { window: windowOf({ limit: 4, remaining: 0, ours: 4, endsAt: NOW }), ...onTheWay(4) },
      AFTER_ANSWER,
    ],
    ['waits for the end of a window of 0', { window: windowOf({ limit: 0, remaining: 0, ours: 0 }) }, 20_000],
    ['waits for the first answer', { heardAt: 0, ...onTheWay(1) }, AFTER_ANSWER],
    ['waits for the first answer after a silence', { heardAt: NOW - MINUTE, ...onTheWay(1) }, AFTER_ANSWER],
    [
      'waits for the first answer of a window that others use, too',
      { window: windowOf({ remaining: 0, ours: 10, endsAt: NOW }), ...onTheWay(1) },
      AFTER_ANSWER,
    ],
    [
      'waits for no answer of a killed process',
      { heardAt: 0, inFlight: [flightOf({ at: NOW - 20_001 })] },
      0,
    ],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, 5000],
  ])('%s', (_case, budget, wait) => {
    expect(waitOf(budget)).toBe(wait)
  })

  it.each<[string, Partial<Budget>, Partial<RateRules>, string]>([
    ['a pause', { closedUntil: NOW + 1 }, {}, 'the server asked for a pause'],
    [
      'the first answer',
      { heardAt: 0, ...onTheWay(1) },
      {},
      'a first answer, which shows what the rate limit has left',
    ],
    ['the server', { window: windowOf({ remaining: 0 }) }, {}, "the server's limit of 60 requests a minute"],
  ])('says that it waits for %s', (_case, budget, rules, reason) => {
    expect(decide(budgetWith(budget), { ...RULES, ...rules }, NOW).reason).toBe(reason)
  })

  it.each<[string, Partial<Budget>, Partial<RateRules>, number]>([
    ['any number if nothing limits them', {}, {}, Number.POSITIVE_INFINITY],
    ['one where nothing was heard', { heardAt: 0 }, {}, 1],
    ['what is left in the window', { window: windowOf({ remaining: 7 }), ...onTheWay(2) }, {}, 5],
    ['what our own ceiling leaves', { sent: [[NOW, 3]], ...onTheWay(2) }, { requestsPerMinute: 10 }, 7],
    ['the lesser', { sent: [[NOW, 3]], window: windowOf({ remaining: 4 }) }, { requestsPerMinute: 10 }, 4],
  ])('may be followed by %s', (_case, budget, rules, count) => {
    expect(decide(budgetWith(budget), { ...RULES, ...rules }, NOW).count).toBe(count)
  })
})

describe('under a ceiling of our own the next request', () => {
  const GONE = 61_000

  it.each<[string, number, [number, number][], number]>([
    ['goes at once where one fewer was sent than it allows', 3, [[-50_000, 2]], 0],
    [
      'goes when a place is free',
      3,
      [
        [-50_000, 1],
        [-40_000, 1],
        [-20_000, 2],
      ],
      GONE - 40_000,
    ],
    ['waits for nothing older than that', 1, [[-GONE, 1]], 0],
    ['goes two minutes after the last one at 0.5', 0.5, [[-100_000, 1]], 21_000],
  ])('%s', (_case, requestsPerMinute, sent, wait) => {
    expect(waitOf({ sent: sent.map(([age, count]) => [NOW + age, count]) }, { requestsPerMinute })).toBe(wait)
  })
})

describe('with any budget', () => {
  const times = fc.integer({ min: NOW - 130_000, max: NOW + 70_000 })
  const counts = fc.integer({ min: 0, max: 5 })
  const budgets = fc.record({
    sent: fc.array(fc.tuple(times, counts), { maxLength: 5 }),
    inFlight: fc.array(fc.record({ by: fc.constantFrom('one', 'two'), count: counts, at: times }), {
      maxLength: 2,
    }),
    window: fc.option(
      fc.record({ limit: fc.integer({ min: 1, max: 9 }), remaining: counts, ours: counts, endsAt: times }),
    ),
    heardAt: times,
    closedUntil: fc.constantFrom(0, NOW - 1, NOW, NOW + 1, NOW + 5000),
    throttledAt: fc.constantFrom(0, NOW - 90_000, NOW),
  })
  const rules = fc.record({
    requestsPerMinute: fc.option(fc.constantFrom(0.001, 0.5, 0.99, 1, 1.5, 3, 100.5)),
    sharePercent: fc.constantFrom(1, 2.5, 50, 100),
  })

  it('a request may leave, or waits for a time, or for a response to one on its way', () => {
    fc.assert(
      fc.property(budgets, rules, ({ sent, ...rest }, changed) => {
        const sorted = sent.toSorted(([one], [other]) => one - other)
        const budget = asOfNow(budgetWith({ ...rest, sent: sorted }), NOW)

        const { at, count } = decide(budget, { ...RULES, ...changed }, NOW)

        if (at <= NOW) expect(count).toBeGreaterThanOrEqual(1)
        else expect(count).toBe(0)
        if (at === Number.POSITIVE_INFINITY) expect(onTheirWay(budget, NOW)).toBeGreaterThan(0)
        else if (Number.isFinite(count)) expect(Number.isInteger(count)).toBe(true)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('allowedPerMinute', () => {
  it.each([
    [{}, null],
    [{ requestsPerMinute: 300 }, 300],
    [{ requestsPerMinute: 0.5 }, 0.5],
    [{ requestsPerMinute: 1.5 }, 1],
    [{ announcedLimit: 60 }, 60],
    [{ announcedLimit: 60, requestsPerMinute: 30 }, 30],
    [{ announcedLimit: 60, requestsPerMinute: 300 }, 60],
    [{ announcedLimit: 60, sharePercent: 50 }, 30],
    // A share of almost nothing still lets one through.
    [{ announcedLimit: 60, sharePercent: 1 }, 1],
  ])('of %j is %s', (changed, allowed) => {
    const pace = { requestsPerMinute: null, announcedLimit: null, sharePercent: 100, ...changed }

    expect(allowedPerMinute(pace.announcedLimit, pace)).toBe(allowed)
  })
})

describe('a ceiling of our own', () => {
  it.each<[number, number, number]>([
    [300, 300, MINUTE],
    [1.999, 1, MINUTE],
    [1.5, 1, MINUTE],
    [0.7, 1, 85_715],
  ])('of %s a minute is %i in %i ms', (requestsPerMinute, requests, windowMs) => {
    expect(ceilingOf(requestsPerMinute)).toEqual({ requests, windowMs })
  })

  it.each([
    [300, 300],
    [1.5, 1],
    [0.7, 0.7],
  ])('of %s a minute allows %s over a long time', (requestsPerMinute, average) => {
    expect(averageOf(requestsPerMinute)).toBe(average)
  })
})

describe('the budget now', () => {
  const [ours, theirs] = [
    { requestsPerMinute: null, sharePercent: 100 },
    { limit: 60, left: 59 },
  ]
  it.each([
    ['what the server says is left', theirs, ours, 1, { open: 59, freshMs: 40_000, each: 60 }],
    ['our share of it', theirs, { ...ours, sharePercent: 50 }, 1, { open: 29, each: 30 }],
    ['what others have left of it', { limit: 60, left: 3 }, ours, 1, { open: 3, each: 60 }],
    ['no less than nothing', { limit: 60, left: 3 }, { ...ours, sharePercent: 50 }, 57, { open: 0 }],
    [
      'our ceiling, less what we sent',
      { limit: null, left: null },
      { ...ours, requestsPerMinute: 300 },
      4,
      { open: 296, freshMs: 60_000, each: 300 },
    ],
    [
      'a slow ceiling',
      { limit: null, left: null },
      { ...ours, requestsPerMinute: 0.5 },
      1,
      { open: 0, freshMs: 120_000, each: 1, windowMs: 120_000 },
    ],
    [
      'what we sent, where the server says the limit alone',
      { limit: 60, left: null },
      ours,
      2,
      { open: 58, freshMs: 60_000 },
    ],
  ])('is %s', (_title, { limit, left }, rules, sent, expected) => {
    const announcedLeft = left === null ? null : { requests: left, freshMs: 40_000 }

    expect(budgetNow({ announcedLimit: limit, announcedLeft }, rules, sent)).toMatchObject(expected)
  })

  it('is unknown where nothing limits it', () => {
    expect(budgetNow({ announcedLimit: null, announcedLeft: null }, ours, 1)).toBeNull()
  })

  it.each([
    [59, 0],
    [60, 40_000],
    [119, 40_000],
    [120, 100_000],
  ])('has %i requests leave within %i ms', (requests, ms) => {
    expect(msToSend(requests, { open: 59, freshMs: 40_000, each: 60, windowMs: 60_000 })).toBe(ms)
  })

  it('is whole again when its minute is over', () => {
    const budget = { open: 0, freshMs: 40_000, each: 60, windowMs: 60_000 }

    expect([30_000, 40_000].map((known) => msToSend(60, budget, known))).toEqual([10_000, 0])
    expect([40_000, 50_000].map((known) => msToSend(61, budget, known))).toEqual([60_000, 60_000])
  })
})
