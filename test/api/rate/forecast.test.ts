import { describe, expect, it } from 'vitest'
import { budgetNow, msToSend } from '../../../src/api/rate/forecast.ts'

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
