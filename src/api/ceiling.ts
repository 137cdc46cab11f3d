import { MINUTE_MS } from './rate-window.ts'

/** Our own ceiling in whole requests: no `windowMs` hold more than `requests`. */
export interface Ceiling {
  requests: number
  windowMs: number
}

/**
 * From one a minute on, 60 seconds hold the whole part of the rate: one request more would be above it, so 1.5 allows no
 * more than 1. Below, one request goes in 1/rate minutes: 0.5 is one in two minutes.
 */
export function ceilingOf(requestsPerMinute: number): Ceiling {
  return requestsPerMinute < 1
    ? { requests: 1, windowMs: Math.ceil(MINUTE_MS / requestsPerMinute) }
    : { requests: Math.floor(requestsPerMinute), windowMs: MINUTE_MS }
}

/** Requests a minute that the ceiling allows over a long time. */
export function averageOf(requestsPerMinute: number): number {
  return requestsPerMinute < 1 ? requestsPerMinute : Math.floor(requestsPerMinute)
}
