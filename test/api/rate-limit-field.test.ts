import { describe, expect, it } from 'vitest'
import { readRateHeaders } from '../../src/api/rate-headers.ts'
import { type RateLimitField, readRateLimitField } from '../../src/api/rate-limit-field.ts'

describe('the RateLimit header', () => {
  it.each<[string, string, string | null, RateLimitField]>([
    [
      'with its policy',
      '"default";r=50;t=30',
      '"default";q=100;w=60',
      { limit: 100, remaining: 50, reset: 30 },
    ],
    [
      'with spaces',
      '"default"; r=50; t=30',
      '"default"; q=100; w=60',
      { limit: 100, remaining: 50, reset: 30 },
    ],
    ['without its policy', '"default";r=50;t=30', null, { limit: null, remaining: 50, reset: 30 }],
    ['without its reset', '"default";r=0', '"default";q=100', { limit: 100, remaining: 0, reset: null }],
    [
      'of several policies, by the one that stops us first',
      '"minute";r=50;t=30, "day";r=7;t=3600',
      '"minute";q=100;w=60, "day";q=5000;w=86400',
      { limit: 5000, remaining: 7, reset: 3600 },
    ],
    [
      'with parameters that say nothing to us',
      '"a";r=5;t=30;pk=:dXNlcg==:',
      '"a";q=10;qu="requests"',
      { limit: 10, remaining: 5, reset: 30 },
    ],
    [
      'in its older form',
      'limit=100, remaining=50, reset=30',
      '100;w=60',
      { limit: 100, remaining: 50, reset: 30 },
    ],
    ['in its older form, in part', 'remaining=50', null, { limit: null, remaining: 50, reset: null }],
  ])('is read %s', (_case, field, policy, expected) => {
    expect(readRateLimitField(field, policy)).toEqual(expected)
  })

  it.each([null, '', 'soon', '"default"', '"default";r=many', 'limit=100', '"default";r=-1'])(
    'is none where it cannot be read: %s',
    (field) => {
      expect(readRateLimitField(field, '"default";q=100')).toBeNull()
    },
  )

  it('counts where no header of its own says the same', () => {
    const both = {
      ratelimit: '"default";r=50;t=30',
      'ratelimit-policy': '"default";q=100;w=60',
      'x-ratelimit-remaining': '40',
    }

    const told = readRateHeaders(both, 0)

    expect(told).toEqual({ limit: 100, remaining: 40, resetMs: 30_000, retryAfterMs: null })
  })
})
