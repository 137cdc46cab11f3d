import type { Headers } from '../../../src/api/rate/headers.ts'

/** What a server answers to one request: 200 or 429, and the headers about its limit. */
export interface Answered {
  status: 200 | 429
  headers: Headers
}

/**
 * Laravel's limiter as it was observed: a window that begins with the first request it counts, headers that do not show
 * its end, and 429s that are not counted. `whole` rounds the window's end down to whole seconds, as Laravel's clock does.
 * Times are epoch milliseconds.
 */
export function createFixedWindow(limit: number, { whole }: { whole: boolean }) {
  let end = 0
  let hits = 0

  return (now: number): Answered => {
    if (now >= end) {
      end = (whole ? Math.floor(now / 1000) * 1000 : now) + 60_000
      hits = 0
    }
    const counts = { date: new Date(now).toUTCString(), 'x-ratelimit-limit': String(limit) }
    if (hits < limit) {
      hits++
      return { status: 200, headers: { ...counts, 'x-ratelimit-remaining': String(limit - hits) } }
    }
    const wait = Math.max(0, Math.ceil(end / 1000) - Math.floor(now / 1000))
    const reset = { 'retry-after': String(wait), 'x-ratelimit-reset': String(Math.ceil(end / 1000)) }
    return { status: 429, headers: { ...counts, 'x-ratelimit-remaining': '0', ...reset } }
  }
}
