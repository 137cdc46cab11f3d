/** So many requests in a window that begins with the first one that is counted. */
export interface Limit {
  most: number
  windowSeconds: number
}

export interface ThrottleRules {
  /** One or two; the headers show the one with the fewest left. */
  limits: readonly Limit[]
  /** Some servers write none of the headers, not even on a 429. */
  headers: boolean
}

export type Headers = Record<string, string>

/** Laravel's throttle: a refused request is not counted, and only the refusal says when the window ends. */
export interface Throttle {
  /** Counts the request, or refuses it. */
  admit(key: string, now: number): { admitted: boolean; headers: Headers }
}

interface Bucket {
  limit: Limit
  hits: number
  /** Laravel reckons in whole seconds. */
  endsAtSecond: number
}

export function createThrottle({ limits, headers }: ThrottleRules): Throttle {
  const bucketsOf = new Map<string, Bucket[]>()

  function openBuckets(key: string, second: number): Bucket[] {
    const known = bucketsOf.get(key) ?? limits.map((limit) => ({ limit, hits: 0, endsAtSecond: 0 }))
    bucketsOf.set(key, known)
    for (const bucket of known) if (second >= bucket.endsAtSecond) bucket.hits = 0
    return known
  }

  return {
    admit(key, now) {
      const second = Math.floor(now / 1000)
      const buckets = openBuckets(key, second)
      const full = buckets.find(({ hits, limit }) => hits >= limit.most)
      if (full) return { admitted: false, headers: headers ? refusal(full, second) : {} }
      for (const bucket of buckets) {
        if (bucket.hits === 0) bucket.endsAtSecond = second + bucket.limit.windowSeconds
        bucket.hits++
      }
      return { admitted: true, headers: headers ? standing(buckets) : {} }
    },
  }
}

function refusal({ limit, endsAtSecond }: Bucket, second: number): Headers {
  return {
    'x-ratelimit-limit': String(limit.most),
    'x-ratelimit-remaining': '0',
    'retry-after': String(endsAtSecond - second),
    'x-ratelimit-reset': String(endsAtSecond),
  }
}

function standing(buckets: readonly Bucket[]): Headers {
  const [tightest] = buckets.toSorted((a, b) => a.limit.most - a.hits - (b.limit.most - b.hits))
  if (!tightest) return {}
  const { limit, hits } = tightest
  return { 'x-ratelimit-limit': String(limit.most), 'x-ratelimit-remaining': String(limit.most - hits) }
}
