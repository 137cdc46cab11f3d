import { describe, expect, it } from 'vitest'
import { allowedPerMinute } from '../../../src/api/rate/decision.ts'
import { estimate } from '../../../src/cli/output/estimate.ts'

const PACE = {
  allowed: null,
  msPerPage: 100,
  answers: 1,
  others: [],
}

describe('estimate', () => {
  it.each([
    ['what the server announced', 4000, { allowed: 60 }, '4,000 pages, about 67 minutes at 60 a minute'],
    ['our own ceiling', 4000, { allowed: 300 }, '4,000 pages, about 13 minutes at 300 a minute'],
    [
      'the speed of a slow server',
      100,
      { allowed: 600, msPerPage: 6000, answers: 3 },
      '100 pages, about 10 minutes at the speed of the first 3',
    ],
    ['the speed where no limit is known', 600, {}, '600 pages, about 60 seconds at the speed of the first'],
    [
      'the limit while one answer alone was slow',
      200,
      { allowed: 600, msPerPage: 6000 },
      '200 pages, about 20 seconds at 600 a minute',
    ],
    [
      'all lists that share the limit, those without an answer too',
      40,
      { allowed: 60, others: [...Array(10).fill(40), ...Array(9).fill(null)] },
      '40 pages, about 13 minutes at 60 a minute, shared by 20 lists',
    ],
    [
      'no more of a longer list than of this one',
      10,
      { allowed: 60, others: [4000] },
      '10 pages, about 20 seconds at 60 a minute, shared by 2 lists',
    ],
    ['one page', 1, { allowed: 60 }, '1 page, about 1 second at 60 a minute'],
  ])('goes by %s', (_, pages, pace, words) => {
    expect(estimate(pages, { ...PACE, ...pace }).text).toBe(words)
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
