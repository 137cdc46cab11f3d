import { afterEach, describe, expect, it } from 'vitest'
import { type Headers, type RateHeaders, readRateHeaders } from '../../../src/api/rate/headers.ts'

/** Our clock. */
const NOW = Date.UTC(2026, 10, 20, 8, 30, 0)
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** A server whose clock is an hour before ours. */
const EARLIER = { date: 'Fri, 20 Nov 2026 07:30:00 GMT' }

function epochSeconds(ms: number): string {
  return String(ms / 1000)
}

const { TZ } = process.env
afterEach(() => {
  if (TZ === undefined) delete process.env.TZ
  else process.env.TZ = TZ
})

describe('the rate headers of a response', () => {
  it('is read from a success and from a 429 as Laravel sends them', () => {
    const success = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '59' }
    const refusal = {
      ...EARLIER,
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '0',
      'retry-after': '58',
      'x-ratelimit-reset': epochSeconds(NOW - HOUR + 58_000),
    }

    expect(readRateHeaders(success, NOW)).toEqual({
      limit: 60,
      remaining: 59,
      resetMs: null,
      retryAfterMs: null,
    })
    expect(readRateHeaders(refusal, NOW)).toEqual({
      limit: 60,
      remaining: 0,
      resetMs: 58_000,
      retryAfterMs: 58_000,
    })
  })

  it.each<[string, Headers, Partial<RateHeaders>]>([
    ['seconds with a fraction', { 'retry-after': '1.5' }, { retryAfterMs: 1500 }],
    ['seconds beyond a day', { 'retry-after': '86401' }, { retryAfterMs: DAY }],
    ['a negative number', { 'retry-after': '-5' }, { retryAfterMs: null }],
    ['an exponent', { 'retry-after': '1e3' }, { retryAfterMs: null }],
    ['an ISO date', { 'retry-after': '2026-11-20T08:31:00Z' }, { retryAfterMs: null }],
  ])('may be a Retry-After of %s', (_case, headers, expected) => {
    expect(readRateHeaders(headers, NOW)).toMatchObject(expected)
  })

  it.each<[string, Headers, number]>([
    ['by our clock without a Date', { 'retry-after': 'Fri, 20 Nov 2026 08:31:00 GMT' }, 60_000],
    ['by our clock, Date broken', { date: 'Friday', 'retry-after': 'Fri, 20 Nov 2026 08:31:00 GMT' }, 60_000],
    ['as none when it has passed', { 'retry-after': 'Fri, 20 Nov 2026 08:29:00 GMT' }, 0],
    ['as a day at most', { 'retry-after': 'Sun, 20 Nov 2033 08:30:00 GMT' }, DAY],
    ['in the form of RFC 850', { 'retry-after': 'Friday, 20-Nov-26 08:31:00 GMT' }, 60_000],
    ['in the form of C, which names no zone', { 'retry-after': 'Fri Nov 20 08:31:00 2026' }, 60_000],
    [
      'with a Date in the form of C',
      { date: 'Fri Nov 20 07:30:00 2026', 'retry-after': 'Fri, 20 Nov 2026 07:31:00 GMT' },
      60_000,
    ],
    ['with a zone of its own', { 'retry-after': 'Fri, 20 Nov 2026 09:31:00 +0100' }, 60_000],
  ])('may be a Retry-After of a date, taken %s', (_case, headers, expected) => {
    for (const zone of ['UTC', 'Pacific/Auckland', 'America/New_York']) {
      process.env.TZ = zone

      expect(readRateHeaders(headers, NOW).retryAfterMs).toBe(expected)
    }
  })

  it.each<[string, Headers, number | null]>([
    ["by the server's clock", { ...EARLIER, 'x-ratelimit-reset': epochSeconds(NOW - HOUR + 30_000) }, 30_000],
    ['a time by our clock without a Date', { 'x-ratelimit-reset': epochSeconds(NOW + 30_000) }, 30_000],
    ['a time in milliseconds', { 'x-ratelimit-reset': String(NOW + 30_000) }, 30_000],
    ['a time beyond a day', { 'x-ratelimit-reset': epochSeconds(NOW + 2 * DAY) }, DAY],
    ['seconds from now without X-', { ...EARLIER, 'ratelimit-reset': '30' }, 30_000],
    ['a negative number', { 'x-ratelimit-reset': '-30' }, null],
    ['a time that has passed', { 'x-ratelimit-reset': epochSeconds(NOW - 1000) }, 0],
  ])('may be a reset of %s', (_case, headers, expected) => {
    expect(readRateHeaders(headers, NOW).resetMs).toBe(expected)
  })

  it.each<[string, Headers, number | null, number | null]>([
    [
      'with X- first',
      { 'x-ratelimit-limit': '60', 'ratelimit-limit': '10', 'x-ratelimit-remaining': '5' },
      60,
      5,
    ],
    ['with their policy', { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '99' }, 100, 99],
    [
      'of server and proxy, joined',
      { 'x-ratelimit-limit': '300, 60', 'x-ratelimit-remaining': '7,59' },
      60,
      7,
    ],
    ['in a list', { 'x-ratelimit-limit': ['300', '60'], 'x-ratelimit-remaining': ['7', '59'] }, 60, 7],
    ['one of them no number', { 'x-ratelimit-limit': '60, many', 'x-ratelimit-remaining': '59' }, null, 59],
    ['below 0', { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '-1' }, 60, null],
    ['with a fraction', { 'x-ratelimit-limit': '60.0', 'x-ratelimit-remaining': '59.9' }, 60, 59],
    ['long', { 'x-ratelimit-limit': '9'.repeat(30), 'x-ratelimit-remaining': '9'.repeat(400) }, null, null],
  ])('may be counts %s', (_case, headers, limit, remaining) => {
    expect(readRateHeaders(headers, NOW)).toMatchObject({ limit, remaining })
  })
})
