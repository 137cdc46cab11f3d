import { describe, expect, it } from 'vitest'
import { averageOf, ceilingOf } from '../../../src/api/rate/decision.ts'
import { MINUTE, RULES } from '../helpers/budgets.ts'
import { createFixedWindow } from '../helpers/fixed-window.ts'
import { createRandom, mostIn, simulate } from '../helpers/traffic.ts'

const HOUR = 60 * MINUTE

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

describe('a small share of a small limit', () => {
  it('lets one request of a window through, and no more', async () => {
    const { served, throttled } = await simulate({
      rules: { ...RULES, sharePercent: 1 },
      senders: 2,
      latency: [20, 150],
      duration: HOUR,
      random: createRandom(1),
      server: createFixedWindow(60, { whole: false }),
    })

    expect(throttled).toBe(0)
    expect(mostIn(MINUTE, served)).toBe(1)
    expect(served.length).toBeGreaterThanOrEqual(58)
  })
})
