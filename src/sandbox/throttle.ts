/** Whether a request is allowed, and how many remain in the window or how long to wait. */
export type Verdict =
  | { allowed: true; remaining: number }
  /** Whole seconds, and epoch seconds; both rounded up. */
  | { allowed: false; retryAfter: number; reset: number }

const WINDOW = 60_000

/**
 * Laravel's limiter: for each key a window of a minute, which starts with the first request counted. A refused request
 * is not counted and does not prolong the window. Returns a function of the key and the time (epoch ms).
 */
export function createThrottle(limit: number): (key: string, now: number) => Verdict {
  const windows = new Map<string, { end: number; hits: number }>()
  return (key, now) => {
    const open = windows.get(key)
    const current = open !== undefined && now < open.end ? open : { end: now + WINDOW, hits: 0 }
    if (current.hits >= limit) {
      return {
        allowed: false,
        retryAfter: Math.ceil((current.end - now) / 1000),
        reset: Math.ceil(current.end / 1000),
      }
    }
    current.hits += 1
    windows.set(key, current)
    return { allowed: true, remaining: limit - current.hits }
  }
}
