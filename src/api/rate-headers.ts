import { readRateLimitField } from './rate-limit-field.ts'

/** Response headers by lower-case name, as Node gives them. */
export type Headers = Record<string, string | string[] | undefined>

/** What an answer announces about the rate limit. */
export interface RateHeaders {
  /** Requests a window. */
  limit: number | null
  /** Requests left in it. */
  remaining: number | null
  /** Milliseconds from now until the window ends. */
  resetMs: number | null
  /** Milliseconds from now until the server wants to be asked again. */
  retryAfterMs: number | null
}

/** No server is believed when it asks for a longer silence: `rateLimit.maxWait` of the interface says 24 hours. */
export const LONGEST_MS = 24 * 3_600_000

/**
 * Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, or the same without `X-`, else `RateLimit` with `RateLimit-Policy`,
 * and `Retry-After` as seconds or as a date. Dates and resets are the server's clock, so they are taken as a distance from
 * its own `Date`.
 */
export function readRateHeaders(headers: Headers, nowMs: number): RateHeaders {
  const serverNowMs = dateOf(headers, 'date') ?? nowMs
  const field = readRateLimitField(textOf(headers, 'ratelimit'), textOf(headers, 'ratelimit-policy'))
  return {
    limit: countOf(headers, 'limit') ?? field?.limit ?? null,
    remaining: countOf(headers, 'remaining') ?? field?.remaining ?? null,
    resetMs: bounded(reset(headers, serverNowMs) ?? inMs(field?.reset ?? null)),
    retryAfterMs: bounded(retryAfter(headers, serverNowMs)),
  }
}

function inMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000
}

function bounded(ms: number | null): number | null {
  return ms === null ? null : Math.min(Math.max(ms, 0), LONGEST_MS)
}

function retryAfter(headers: Headers, serverNowMs: number): number | null {
  const seconds = numberOf(textOf(headers, 'retry-after'))
  if (seconds !== null) return seconds * 1000
  const date = dateOf(headers, 'retry-after')
  return date === null ? null : date - serverNowMs
}

/** `X-` headers mostly name a time, the others a distance: a number too small for a time of our days is one. */
function reset(headers: Headers, serverNowMs: number): number | null {
  const seconds = countOf(headers, 'reset')
  if (seconds === null) return null
  if (seconds < 1e9) return seconds * 1000
  // As a number of seconds it would be thousands of years away: it is written in milliseconds.
  return (seconds < 1e11 ? seconds * 1000 : seconds) - serverNowMs
}

/** Where server and proxy both wrote the header, Node joins the values: the least is the one that stops us. */
function countOf(headers: Headers, name: 'limit' | 'remaining' | 'reset'): number | null {
  const text = textOf(headers, `x-ratelimit-${name}`) ?? textOf(headers, `ratelimit-${name}`)
  const counts = (text ?? '').split(',').map((part) => numberOf(part.replace(/;.*/, '').trim()))
  const least = counts.some((count) => count === null) ? null : Math.floor(Math.min(...counts.map(Number)))
  return Number.isSafeInteger(least) ? least : null
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null
}

function dateOf(headers: Headers, name: string): number | null {
  const text = textOf(headers, name)
  // Date.parse reads almost anything; an HTTP date begins with the name of a day.
  if (text === null || !/^[A-Z][a-z]{2}/.test(text)) return null
  // The oldest of the three forms names no zone, and Date.parse would take ours.
  const time = Date.parse(/:\d\d( \d{4})?$/.test(text) ? `${text} GMT` : text)
  return Number.isNaN(time) ? null : time
}

function textOf(headers: Headers, name: string): string | null {
  const value = headers[name]
  const text = Array.isArray(value) ? value.join(',') : value
  return text === undefined ? null : text.trim()
}
