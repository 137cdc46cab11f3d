import { describe, expect, it } from 'vitest'
import { type Report, settle, take } from '../../src/api/rate-account.ts'
import type { Budget } from '../../src/api/rate-budget.ts'
import { blockOf, budgetWith, MINUTE, NOTHING, NOW, RULES, told, windowOf } from './helpers/budgets.ts'

const REPORT: Report = { by: 'this one', sent: [], answers: [], inFlight: 0, unannounced: [] }
const OWN = blockOf({ by: 'this one', count: 5, inFlight: 2 })

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

describe('answers that announce nothing', () => {
  const unannounced = [NOW - MINUTE, NOW - 5, NOW - 4]

  it('are counted while a 429 is waited out', () => {
    const closed = budgetWith({ throttled: 1, throttledAt: NOW, closedUntil: NOW + MINUTE })

    const after = settle(closed, { ...REPORT, unannounced }, RULES, NOW)

    expect(after.unannounced).toMatchObject({ count: 2, firstAt: NOW - 5 })
  })

  it.each<[string, Partial<Budget>]>([
    ['while nothing is waited for', {}],
    ['during a pause that no 429 asked for', { closedUntil: NOW + MINUTE }],
    ['once the pause is over', { throttled: 1, throttledAt: NOW - MINUTE, closedUntil: NOW }],
  ])('are not %s', (_case, budget) => {
    expect(settle(budgetWith(budget), { ...REPORT, unannounced }, RULES, NOW).unannounced.count).toBe(0)
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
