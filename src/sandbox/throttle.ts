/** What became of one request: `remaining` after it, or how long to stay away. */
export type Verdict =
  | { allowed: true; remaining: number }
  | {
      allowed: false /** whole seconds, rounded up */
      retryAfter: number /** epoch seconds, rounded up */
      reset: number
    }

const WINDOW = 60_000

/**
 * Laravel's limiter: a window of a minute that starts with the first request it counts, one for each key. A refused request is
 * not counted and does not prolong the window. Returns a function of the key and of the time (epoch ms).
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
