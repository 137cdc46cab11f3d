/** Response headers by lower-case name, as Node gives them. */
export type Headers = Record<string, string | string[] | undefined>

/** What an answer says about the rate limit. */
export interface Announcement {
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
const LONGEST_MS = 24 * 3_600_000

/**
 * Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, and `Retry-After` as seconds or as a date.
 * Dates and resets are the server's clock, so they are taken as a distance from its own `Date`.
 */
export function readRateHeaders(headers: Headers, nowMs: number): Announcement {
  const serverNowMs = dateOf(headers, 'date') ?? nowMs
  return {
    limit: countOf(headers, 'x-ratelimit-limit'),
    remaining: countOf(headers, 'x-ratelimit-remaining'),
    resetMs: bounded(reset(headers, serverNowMs)),
    retryAfterMs: bounded(retryAfter(headers, serverNowMs)),
  }
}

function bounded(ms: number | null): number | null {
  return ms === null ? null : Math.min(Math.max(ms, 0), LONGEST_MS)
}

function retryAfter(headers: Headers, serverNowMs: number): number | null {
  const seconds = numberOf(headers, 'retry-after')
  if (seconds !== null) return seconds * 1000
  const date = dateOf(headers, 'retry-after')
  return date === null ? null : date - serverNowMs
}

function reset(headers: Headers, serverNowMs: number): number | null {
  const epochSeconds = countOf(headers, 'x-ratelimit-reset')
  return epochSeconds === null ? null : epochSeconds * 1000 - serverNowMs
}

function numberOf(headers: Headers, name: string): number | null {
  const text = textOf(headers, name)
  return text !== null && /^\d{1,12}(\.\d{1,6})?$/.test(text) ? Number(text) : null
}

function countOf(headers: Headers, name: string): number | null {
  const value = numberOf(headers, name)
  return value === null ? null : Math.floor(value)
}

function dateOf(headers: Headers, name: string): number | null {
  const text = textOf(headers, name)
  // Date.parse reads almost anything; an HTTP date begins with the name of a day.
  if (text === null || !/^[A-Z][a-z]{2}/.test(text)) return null
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}

function textOf(headers: Headers, name: string): string | null {
  const value = headers[name]
  const text = Array.isArray(value) ? value[0] : value
  return text === undefined ? null : text.trim()
}
