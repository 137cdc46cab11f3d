import { describe, expect, it } from 'vitest'
import { allowedPerMinute } from '../../../src/api/rate/decision.ts'
import { budgetLater, budgetNow, estimate, msToSend } from '../../../src/cli/output/estimate.ts'

const PACE = {
  allowed: null,
  msPerPage: 100,
  answers: 1,
  others: [],
}

describe('estimate', () => {
  it.each([
    ['what the server announced', 4000, { allowed: 60 }, '4,000 pages, about 67 minutes at 60 a minute'],
    ['our own ceiling', 4000, { allowed: 300 }, '4,000 pages, about 14 minutes at 300 a minute'],
    [
      'the speed of a slow server',
      100,
      { allowed: 600, msPerPage: 6000, answers: 3 },
      '100 pages, about 10 minutes at the speed of the first 3',
    ],
    [
      'the speed where no limit is known',
      600,
      { answers: 3 },
      '600 pages, about 60 seconds at the speed of the first 3',
    ],
    ['nothing, after a single answer that may have been slow', 600, {}, undefined],
    [
      'the limit while one answer alone was slow',
      200,
      { allowed: 600, msPerPage: 6000 },
      '200 pages, about 60 seconds at 600 a minute',
    ],
    [
      'all lists that share the limit, those without an answer too',
      40,
      { allowed: 60, others: [...Array(10).fill(40), ...Array(9).fill(null)] },
      '40 pages, about 14 minutes at 60 a minute, shared by 20 lists',
    ],
    [
      'no more of a longer list than of this one',
      10,
      { allowed: 60, others: [4000] },
      '10 pages, about 60 seconds at 60 a minute, shared by 2 lists',
    ],
    [
      'the next minute, where nothing is left of this one',
      1,
      { allowed: 60 },
      '1 page, about 60 seconds at 60 a minute',
    ],
    [
      'the speed, where a fresh minute allows all of it',
      84,
      { allowed: 120, open: 119, msPerPage: 13, answers: 3 },
      '84 pages, about 1 second at the speed of the first 3',
    ],
  ])('goes by %s', (_, pages, pace, words) => {
    const allowed = 'allowed' in pace ? pace.allowed : null
    const used = { open: 0, freshMs: 60_000, each: allowed ?? 1, windowMs: 60_000 }
    const budget = allowed === null ? null : { ...used, open: 'open' in pace ? pace.open : 0 }

    expect(estimate(pages, { ...PACE, budget, ...pace })?.text).toBe(words)
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

    expect(budgetLater(budget, 30_000)).toEqual({ ...budget, freshMs: 10_000 })
    expect(budgetLater(budget, 40_000)).toEqual({ ...budget, open: 60, freshMs: 60_000 })
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
