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

/**
 * Reads `X-RateLimit-Limit`, `-Remaining` and `-Reset`, or the same without `X-`, and `Retry-After`. Dates and resets are by the
 * server's clock: they are compared with its `Date`.
 */
export function readRateHeaders(headers: Headers, nowMs: number): RateHeaders {
  const serverNowMs = serverTime(headers) ?? nowMs
  return {
    limit: headerCount(headers, 'limit'),
    remaining: headerCount(headers, 'remaining'),
    resetMs: bounded(reset(headers, serverNowMs)),
    retryAfterMs: bounded(retryAfter(headers, serverNowMs)),
  }
}

function bounded(ms: number | null): number | null {
  return ms === null ? null : Math.min(Math.max(ms, 0), LONGEST_MS)
}

function retryAfter(headers: Headers, serverNowMs: number): number | null {
  const seconds = numberOf(headerText(headers, 'retry-after'))
  if (seconds !== null) return seconds * 1000
  const date = dateOf(headers, 'retry-after')
  return date === null ? null : date - serverNowMs
}

/** Milliseconds until the reset. A small number is seconds from now; a large one is a time, as in most `X-` headers. */
function reset(headers: Headers, serverNowMs: number): number | null {
  const seconds = headerCount(headers, 'reset')
  if (seconds === null) return null
  if (seconds < 1e9) return seconds * 1000
  // From 1e11 on it is in milliseconds: as seconds it would be thousands of years away.
  return (seconds < 1e11 ? seconds * 1000 : seconds) - serverNowMs
}

/** The least value. Node joins the values of a server and a proxy that both wrote the header. */
function headerCount(headers: Headers, name: 'limit' | 'remaining' | 'reset'): number | null {
  const text = headerText(headers, `x-ratelimit-${name}`) ?? headerText(headers, `ratelimit-${name}`)
  const counts = (text ?? '').split(',').map((part) => numberOf(part.replace(/;.*/, '').trim()))
  const least = counts.some((count) => count === null) ? null : Math.floor(Math.min(...counts.map(Number)))
  return Number.isSafeInteger(least) ? least : null
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null
}

/** The server's time, by its `Date`; null if that is missing or no date. Epoch milliseconds. */
export function serverTime(headers: Headers): number | null {
  return dateOf(headers, 'date')
}

function dateOf(headers: Headers, name: string): number | null {
  const text = headerText(headers, name)
  // Date.parse accepts almost anything; an HTTP date begins with the name of a day.
  if (text === null || !/^[A-Z][a-z]{2}/.test(text)) return null
  // The oldest of the three forms names no zone, and Date.parse would assume ours.
  const time = Date.parse(/:\d\d( \d{4})?$/.test(text) ? `${text} GMT` : text)
  return Number.isNaN(time) ? null : time
}

function headerText(headers: Headers, name: string): string | null {
  const value = headers[name]
  const text = Array.isArray(value) ? value.join(',') : value
  return text === undefined ? null : text.trim()
}

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || (status >= 500 && status <= 599)
}
