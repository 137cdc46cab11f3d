import { describe, expect, it } from 'vitest'
import { ceilingOf } from '../../src/api/ceiling.ts'
import type { Budget, RateRules } from '../../src/api/rate-budget.ts'
import { decide, openings } from '../../src/api/rate-decision.ts'
import type { Window } from '../../src/api/rate-window.ts'
import { blockOf, budgetWith, MINUTE, NOW, RULES, windowOf } from './helpers/budgets.ts'

/** Milliseconds until the next request may go. */
function waitOf(budget: Partial<Budget>, rules: Partial<RateRules> = {}): number {
  return Math.max(0, decide(budgetWith(budget), { ...RULES, ...rules }, NOW).at - NOW)
}

/** Requests that another process has on their way. */
function onTheWay(inFlight: number) {
  return { blocks: [blockOf({ count: 0, inFlight })] }
}

const AFTER_ANSWER = Number.POSITIVE_INFINITY

describe('the next request', () => {
  it.each<[string, Partial<Budget>, number]>([
    ['goes at once when nothing is known', {}, 0],
    ['goes at once while the window has some left', { window: windowOf({ remaining: 1 }) }, 0],
    ['waits for the end of a window that has none left', { window: windowOf({ remaining: 0 }) }, 20_000],
    ['waits when what is left is on its way', { window: windowOf({ remaining: 3 }), ...onTheWay(3) }, 20_000],
    [
      'goes when one more is left than is on its way',
      { window: windowOf({ remaining: 3 }), ...onTheWay(2) },
      0,
    ],
    [
      'waits when what is left was taken',
      { window: windowOf({ remaining: 3 }), blocks: [blockOf({ count: 3 })] },
      20_000,
    ],
    ['goes once the window has ended', { window: windowOf({ remaining: 0, ours: 60, endsAt: NOW }) }, 0],
    [
      'waits for an answer when a whole new window is on its way',
      { window: windowOf({ limit: 4, remaining: 0, ours: 4, endsAt: NOW }), ...onTheWay(4) },
      AFTER_ANSWER,
    ],
    ['waits for the end of a window of 0', { window: windowOf({ limit: 0, remaining: 0, ours: 0 }) }, 20_000],
    ['goes when it is the first', { heardAt: 0 }, 0],
    ['waits for the first answer', { heardAt: 0, ...onTheWay(1) }, AFTER_ANSWER],
    [
      'waits for the first answer after a minute of silence',
      { heardAt: NOW - MINUTE, ...onTheWay(1) },
      AFTER_ANSWER,
    ],
    ['waits for the first answer after a 429', { throttledAt: NOW, ...onTheWay(1) }, AFTER_ANSWER],
    [
      'waits for the first answer of a window that others use, too',
      { window: windowOf({ remaining: 0, ours: 10, endsAt: NOW }), ...onTheWay(1) },
      AFTER_ANSWER,
    ],
    [
      'waits for no answer of a process that was killed',
      { heardAt: 0, blocks: [blockOf({ until: NOW - 10_001 })] },
      0,
    ],
    ['waits for the end of a pause', { closedUntil: NOW + 5000 }, 5000],
    ['goes after a pause', { closedUntil: NOW }, 0],
    ['waits for the later of two', { closedUntil: NOW + 5000, window: windowOf({ remaining: 0 }) }, 20_000],
  ])('%s', (_case, budget, wait) => {
    expect(waitOf(budget)).toBe(wait)
  })

  it.each<[string, number, Partial<Window>, number, number]>([
    ['has its share left', 50, { remaining: 31, ours: 29 }, 0, 0],
    ['has used its share', 50, { remaining: 30, ours: 30 }, 0, 20_000],
    ['has the rest of its share on its way', 50, { remaining: 33, ours: 27 }, 3, 20_000],
    ['keeps its share when others have used theirs', 50, { remaining: 29, ours: 1 }, 0, 0],
    ['gets nothing of a window that others have used up', 50, { remaining: 0, ours: 1 }, 0, 20_000],
    ['leaves what others have not used yet', 50, { remaining: 20, ours: 30 }, 0, 20_000],
    ['has a share of one at the least', 1, { remaining: 60, ours: 0 }, 0, 0],
    ['has no more than one then', 1, { remaining: 59, ours: 1 }, 0, 20_000],
    ['has all', 100, { remaining: 1, ours: 10 }, 0, 0],
  ])('with a share %s', (_case, sharePercent, window, inFlight, wait) => {
    const blocks = inFlight > 0 ? onTheWay(inFlight) : {}

    expect(waitOf({ window: windowOf(window), ...blocks }, { sharePercent })).toBe(wait)
  })

  it('has no more than our share, though a process was killed before it had told what it used', () => {
    const window = windowOf({ remaining: 30, ours: 1 })
    const blocks = [blockOf({ count: 29, until: NOW - 11_000 })]

    expect(waitOf({ window }, { sharePercent: 50 })).toBe(0)
    expect(waitOf({ window, blocks }, { sharePercent: 50 })).toBe(20_000)
  })

  it.each<[string, Partial<Budget>, Partial<RateRules>, string]>([
    ['nothing', {}, {}, 'nothing'],
    ['a pause', { closedUntil: NOW + 1 }, {}, 'the server asked for a pause'],
    ['the first answer', { heardAt: 0, ...onTheWay(1) }, {}, 'the first answer of the server'],
    [
      'our own ceiling',
      { sent: [[NOW, 1]] },
      { requestsPerMinute: 1 },
      'our own limit of 1 requests a minute',
    ],
    [
      'the limit of the server',
      { window: windowOf({ remaining: 0 }) },
      {},
      "the server's limit of 60 requests a minute",
    ],
  ])('says that it waits for %s', (_case, budget, rules, reason) => {
    expect(decide(budgetWith(budget), { ...RULES, ...rules }, NOW).reason).toBe(reason)
  })

  it.each<[string, Partial<Budget>, Partial<RateRules>, number]>([
    ['as many as like where nothing limits them', {}, {}, Number.POSITIVE_INFINITY],
    ['one where nothing was heard', { heardAt: 0 }, {}, 1],
    ['what is left in the window', { window: windowOf({ remaining: 7 }), ...onTheWay(2) }, {}, 5],
    ['what our own ceiling leaves', { sent: [[NOW, 3]], ...onTheWay(2) }, { requestsPerMinute: 10 }, 7],
    [
      'the lesser of both',
      { sent: [[NOW, 3]], window: windowOf({ remaining: 4 }) },
      { requestsPerMinute: 10 },
      4,
    ],
    ['none while it waits', { closedUntil: NOW + 1 }, {}, 0],
  ])('may be followed by %s', (_case, budget, rules, count) => {
    expect(decide(budgetWith(budget), { ...RULES, ...rules }, NOW).count).toBe(count)
  })
})

describe('under a ceiling of our own the next requests', () => {
  const GONE = 60_250

  it.each<[string, number, [number, number][], number, number[]]>([
    ['go at once where none were sent', 2, [], 0, [0, 0]],
    [
      'go as those that were sent become older than a minute',
      3,
      [[-50_000, 2]],
      0,
      [0, GONE - 50_000, GONE - 50_000],
    ],
    [
      'wait behind those that were taken',
      3,
      [
        [-50_000, 2],
        [-20_000, 1],
      ],
      1,
      [GONE - 50_000, GONE - 20_000],
    ],
    ['wait for nothing older than a minute and a moment', 1, [[-GONE, 1]], 0, [0]],
    ['cannot tell when, where all are taken', 2, [], 2, []],
  ])('%s', (_case, most, sent, taken, waits) => {
    const blocks = taken > 0 ? [blockOf({ count: taken })] : []
    const budget = budgetWith({ sent: sent.map(([age, count]) => [NOW + age, count]), blocks })

    expect(openings(budget, ceilingOf(most), NOW).map((at) => at - NOW)).toEqual(waits)
  })
})
