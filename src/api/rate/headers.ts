/** Response headers by lower-case name, as Node gives them. */
export type Headers = Record<string, string | string[] | undefined>

/** What a response announces about the rate limit. */
export interface RateHeaders {
  /** Requests per window. */
  limit: number | null
  /** Requests left in it. */
  remaining: number | null
  /** Milliseconds until the window ends. */
  resetMs: number | null
  /** Milliseconds until the server accepts the next request. */
  retryAfterMs: number | null
}

/** A longer announced pause is cut to this: a server that asks for more is wrong, or its clock is. */
export const LONGEST_MS = 24 * 3_600_000

/** Reads `X-RateLimit-*`, or the same without `X-`, and `Retry-After`. Times in them are by the server's clock: they are compared with its `Date`. */
export function readRateHeaders(headers: Headers, now: number): RateHeaders {
  const serverNow = serverTime(headers) ?? now
  const rate = (name: string) =>
    countIn(headers, `x-ratelimit-${name}`) ?? countIn(headers, `ratelimit-${name}`)
  const reset = rate('reset')
  const seconds = countIn(headers, 'retry-after')
  const date = dateIn(headers, 'retry-after')
  return {
    // Some servers write 0 for none.
    limit: rate('limit') || null,
    remaining: rate('remaining'),
    resetMs: reset === null ? null : bounded(msUntil(reset, serverNow)),
    retryAfterMs: seconds !== null ? bounded(seconds * 1000) : date && bounded(date - serverNow),
  }
}

/** A small number is seconds from now, a larger one a time in seconds, and a time in milliseconds beyond 1e11. */
function msUntil(reset: number, serverNow: number): number {
  if (reset < 1e9) return reset * 1000
  return (reset < 1e11 ? reset * 1000 : reset) - serverNow
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), LONGEST_MS)
}

const NUMBERS = /^\d+(?:\.\d+)?(?:, *\d+(?:\.\d+)?)*$/

/**
 * The least value where a server and a proxy both wrote the header: Node joins them. What stands behind a semicolon only describes one.
 * Parts of one do not count.
 */
function countIn(headers: Headers, name: string): number | null {
  const text = String(headers[name]).replaceAll(/;[^,]*/g, '')
  return NUMBERS.test(text) ? Math.floor(Math.min(...text.split(',').map(Number))) : null
}

/** The server's time, by its `Date`; null if that is missing or no date. Epoch milliseconds. */
export function serverTime(headers: Headers): number | null {
  return dateIn(headers, 'date')
}

function dateIn(headers: Headers, name: string): number | null {
  const text = String(headers[name])
  // Date.parse accepts almost anything.
  return /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) || null : null
}
