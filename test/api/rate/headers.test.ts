import { expect, it } from 'vitest'
import { type Headers, type RateHeaders, readRateHeaders } from '../../../src/api/rate/headers.ts'
import { DAY, NOTHING, NOW } from '../helpers/rate.ts'

/** A server whose clock is an hour before ours. */
const EARLIER = { date: 'Fri, 20 Nov 2026 07:30:00 GMT' }
const seconds = (ms: number) => String(ms / 1000)

it.each<[string, Headers, Partial<RateHeaders>]>([
  [
    'a 429 of Laravel, whose clock is not ours',
    {
      ...EARLIER,
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '0',
      'retry-after': '58',
      'x-ratelimit-reset': seconds(NOW - 3_600_000 + 58_000),
    },
    { limit: 60, remaining: 0, resetMs: 58_000, retryAfterMs: 58_000 },
  ],
  [
    'those of a standard, without X-',
    { 'ratelimit-limit': '60, 60;w=60', 'ratelimit-remaining': '59', 'ratelimit-reset': '30' },
    { limit: 60, remaining: 59, resetMs: 30_000 },
  ],
  ['seconds beyond a day', { 'retry-after': '86401' }, { retryAfterMs: DAY }],
  ['many seconds', { 'retry-after': '9999999999999999' }, { retryAfterMs: DAY }],
  ['seconds with a fraction', { 'retry-after': '3600.5' }, { retryAfterMs: 3_600_000 }],
  ['a negative number', { 'retry-after': '-5', 'x-ratelimit-remaining': '-1' }, {}],
  ['an empty text', { 'retry-after': '', 'x-ratelimit-remaining': '' }, {}],
  ['part of a request', { 'x-ratelimit-remaining': '0.5' }, { remaining: 0 }],
  ['a limit of 0, for none', { 'x-ratelimit-limit': '0' }, {}],
  ['an ISO date', { 'retry-after': '2026-11-20T08:31:00Z' }, {}],
  [
    "a date by the server's clock",
    { ...EARLIER, 'retry-after': 'Fri, 20 Nov 2026 07:31:00 GMT' },
    { retryAfterMs: 60_000 },
  ],
  [
    'a date, its own clock broken',
    { date: 'Friday', 'retry-after': 'Fri, 20 Nov 2026 08:31:00 GMT' },
    { retryAfterMs: 60_000 },
  ],
  ['a date that has passed', { 'retry-after': 'Fri, 20 Nov 2026 08:29:00 GMT' }, { retryAfterMs: 0 }],
  ['a reset at a time in milliseconds', { 'x-ratelimit-reset': String(NOW + 30_000) }, { resetMs: 30_000 }],
  ['a reset beyond a day', { 'x-ratelimit-reset': seconds(NOW + 2 * DAY) }, { resetMs: DAY }],
  [
    'what a server and a proxy wrote',
    { 'x-ratelimit-limit': '300, 60', 'x-ratelimit-remaining': '7,59' },
    { limit: 60, remaining: 7 },
  ],
])('rate headers may be %s', (_case, headers, expected) => {
  expect(readRateHeaders(headers, NOW)).toEqual({ ...NOTHING, ...expected })
})
