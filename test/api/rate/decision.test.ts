import { describe, expect, it } from 'vitest'
import { allowedPerMinute } from '../../../src/api/rate/decision.ts'

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
