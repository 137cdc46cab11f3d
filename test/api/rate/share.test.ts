import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ceilingOf } from '../../../src/api/rate/decision.ts'
import { LONG } from '../../helpers/long.ts'
import { MINUTE, RULES } from '../helpers/budgets.ts'
import { createFixedWindow } from '../helpers/fixed-window.ts'
import { createRandom, type Log, mostIn, mostInAMinute, simulate } from '../helpers/traffic.ts'

// Real rate limiters of one process and of three, killed and restarted within a window, over half an hour of simulated time:
// how much of the budget they use, and how often they exceed it.

const HALF_HOUR = 30 * MINUTE

/** Neither is at the beginning of a window. */
const RESTARTS = [10 * MINUTE + 17_000, 20 * MINUTE + 3000]

/** Both are within a burst of requests, some of which are on their way. */
const KILLED_IN_BURSTS = [7 * MINUTE + 18_000, 19 * MINUTE + 36_000]

describe('our own ceiling', () => {
  it('is not exceeded in any 60 seconds, whatever the responses, by any number of processes', async () => {
    const traffic = fc.record({
      requestsPerMinute: fc.oneof(
        fc.integer({ min: 1, max: 40 }),
        fc.double({ min: 0.5, max: 20, noNaN: true }),
      ),
      processes: fc.integer({ min: 1, max: 3 }),
      senders: fc.integer({ min: 1, max: 8 }),
      latency: fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 500, max: 40_000 })),
      limit: fc.integer({ min: 1, max: 80 }),
      restarts: fc.constantFrom([], [MINUTE + 7000, 2 * MINUTE + 30_000]),
      seed: fc.integer(),
    })

    await fc.assert(
      fc.asyncProperty(traffic, async ({ requestsPerMinute, limit, seed, ...rest }) => {
        const { sent } = await simulate({
          ...rest,
          rules: { ...RULES, requestsPerMinute },
          duration: 5 * MINUTE,
          random: createRandom(seed),
          server: createFixedWindow(limit, { whole: false }),
        })

        const { requests, windowMs } = ceilingOf(requestsPerMinute)
        expect(mostIn(windowMs, sent)).toBeLessThanOrEqual(requests)
      }),
      { numRuns: LONG ? 40 : 5 },
    )
  })

  it.each([
    { requestsPerMinute: 20, processes: 1, restarts: [], senders: 8, latency: [5000, 10_000] as const },
    { requestsPerMinute: 120, processes: 3, restarts: RESTARTS },
  ])(
    'of $requestsPerMinute is used to 97 % by $processes processes, restarted at $restarts',
    async ({ requestsPerMinute, ...traffic }) => {
      const { sent, writes } = await simulate({
        senders: 4,
        latency: [50, 400],
        ...traffic,
        rules: { ...RULES, requestsPerMinute },
        duration: HALF_HOUR,
        random: createRandom(1),
        server: createFixedWindow(10_000, { whole: false }),
      })

      expect(sent.length / (requestsPerMinute * 30)).toBeGreaterThanOrEqual(0.97)
      expect(mostInAMinute(sent)).toBe(requestsPerMinute)
      if (requestsPerMinute === 120) expect(writes / sent.length).toBeLessThan(1.1)
    },
  )
})

interface Case {
  limit: number
  senders: number
  /** Milliseconds on the way, each way. */
  latency: [number, number]
  sharePercent?: number
  processes?: number
  restarts?: readonly number[]
}

function halfHour(
  { sharePercent = 100, limit, ...traffic }: Case,
  whole: boolean,
  others: number[] = [],
): Promise<Log> {
  return simulate({
    ...traffic,
    rules: { ...RULES, sharePercent },
    duration: HALF_HOUR,
    random: createRandom(1),
    server: createFixedWindow(limit, { whole }),
    others,
  })
}

/** For the titles. */
function withDefaults(traffic: Case): Case {
  return { processes: 1, restarts: [], ...traffic }
}

const CASES: Case[] = [
  { limit: 60, senders: 1, latency: [20, 150] },
  { limit: 60, senders: 8, latency: [20, 3000] },
  { limit: 5, senders: 4, latency: [20, 150] },
  { limit: 300, senders: 8, latency: [20, 150], processes: 3, restarts: RESTARTS },
  { limit: 20, senders: 1, latency: [200, 1000], restarts: KILLED_IN_BURSTS },
  { limit: 60, senders: 8, latency: [20, 3000], processes: 3, restarts: KILLED_IN_BURSTS },
]

/** Every other case, those left out being tried against the other way of counting; in the long run all against both. */
function casesOf(whole: boolean): Case[] {
  return CASES.filter((_, index) => LONG || index % 2 === Number(whole)).map(withDefaults)
}

describe.each([
  ['to the millisecond', false],
  ['in whole seconds', true],
])('half an hour against a fixed window that is counted %s', (_case, whole) => {
  it.each(casesOf(whole))(
    'uses 97 % and provokes at most one 429: $limit a minute, $processes processes of $senders senders, $latency ms, restarts at $restarts',
    async (traffic) => {
      const { served, throttled } = await halfHour(traffic, whole)

      expect(served.length / (traffic.limit * 30)).toBeGreaterThanOrEqual(0.97)
      expect(throttled).toBeLessThanOrEqual(1)
    },
  )

  it.each(casesOf(whole).map((traffic) => ({ ...traffic, sharePercent: 50 })))(
    'takes no more than half of a window, and 97 % of that: $limit a minute, $processes processes of $senders senders, $latency ms, restarts at $restarts',
    async (traffic) => {
      const share = Math.floor(traffic.limit / 2)

      const { served, throttled } = await halfHour(traffic, whole)

      expect(mostInAWindow(served, whole)).toBeLessThanOrEqual(Math.max(share, 1))
      expect(served.length / (share * 30)).toBeGreaterThanOrEqual(0.97)
      expect(throttled).toBe(0)
    },
  )
})

/** The most requests in one window of the server, which begins with the first that comes after the last has ended. */
function mostInAWindow(served: number[], whole: boolean): number {
  let end = 0
  const counts: number[] = []
  for (const time of served.toSorted((one, other) => one - other)) {
    // The simulation begins a quarter of a second after a whole one.
    if (time >= end) {
      end = (whole ? Math.floor((time + 250) / 1000) * 1000 - 250 : time) + MINUTE
      counts.push(0)
    }
    counts.push((counts.pop() ?? 0) + 1)
  }
  return Math.max(0, ...counts)
}

describe('half an hour against a limit that no header announces', () => {
  const RETRY_AFTER = ['retry-after']

  it.each([
    { processes: 1, senders: 1, headers: [] },
    { processes: 3, senders: 8, headers: RETRY_AFTER },
  ])(
    'costs two rounds of 429s, and is used to 97 %: $processes processes of $senders senders, 429s with $headers',
    async ({ processes, senders, headers }) => {
      const window = createFixedWindow(60, { whole: false })
      const server = (now: number) => {
        const { status, headers: all } = window(now)
        return { status, headers: Object.fromEntries(headers.map((name) => [name, all[name]])) }
      }

      const { served, throttled } = await simulate({
        rules: RULES,
        processes,
        senders,
        duration: HALF_HOUR,
        random: createRandom(1),
        latency: [20, 150],
        server,
      })

      // All requests on their way together get the same one.
      expect(throttled).toBeLessThanOrEqual(2 * processes * senders)
      expect(served.length / (60 * 30)).toBeGreaterThanOrEqual(0.97)
    },
  )
})

describe('half an hour beside others on the same budget', () => {
  /** Half of 60 a minute, evenly over the minute. */
  const others = Array.from({ length: 30 * 30 }, (_, index) => index * 2000 + 700)

  it('leaves them their half, and uses nine tenths of its own', async () => {
    const { served, throttled } = await halfHour(
      { limit: 60, senders: 8, latency: [20, 150], sharePercent: 50, processes: 3 },
      false,
      others,
    )

    expect(served.length).toBeGreaterThanOrEqual(30 * 30 * 0.9)
    expect(served.length).toBeLessThanOrEqual(30 * 31)
    expect(throttled).toBe(0)
  })

  it('uses what they leave when all is ours', async () => {
    const { served, throttled } = await halfHour({ limit: 60, senders: 1, latency: [20, 150] }, false, others)

    expect(served.length).toBeGreaterThanOrEqual(30 * 30)
    expect(throttled).toBeLessThanOrEqual(30)
  })
})

describe('a budget that another run has begun to use', () => {
  it('costs one 429, and is used whole from then on', async () => {
    const server = createFixedWindow(60, { whole: false })
    const others = Array.from({ length: 60 }, () => 0)

    const { served, throttled } = await simulate({
      rules: RULES,
      processes: 3,
      senders: 8,
      duration: HALF_HOUR,
      random: createRandom(1),
      latency: [20, 150],
      server,
      others,
    })

    expect(throttled).toBe(1)
    expect(served.length).toBeGreaterThanOrEqual(29 * 60 * 0.97)
  })
})
