import { describe, expect, it } from 'vitest'
import { createThrottle } from '../../src/sandbox/routes.ts'

describe('createThrottle', () => {
  it('counts down, then refuses until the window that the first request began has ended', () => {
    const take = createThrottle(2)

    const verdicts = [10_500, 20_000, 20_001, 70_499, 70_500].map((now) => take('user', now))

    expect(verdicts).toEqual([
      { allowed: true, remaining: 1 },
      { allowed: true, remaining: 0 },
      { allowed: false, retryAfter: 51, reset: 71 },
      { allowed: false, retryAfter: 1, reset: 71 },
      { allowed: true, remaining: 1 },
    ])
  })

  it('begins the next window with the next request, not where the last one ended', () => {
    const take = createThrottle(1)

    take('user', 0)
    take('user', 100_000)

    expect(take('user', 120_000)).toEqual({ allowed: false, retryAfter: 40, reset: 160 })
  })
})
