import pLimit from 'p-limit'
import { expect, it } from 'vitest'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import { type Headers, readRateHeaders } from '../../../src/api/rate/headers.ts'
import { createSteppedClock } from '../../helpers/clock.ts'
import { createBudgetStore, createScene, MINUTE } from '../helpers/rate.ts'

// Real rate limiters over half an hour of simulated time, killed and restarted within a window: how much of a server's limit they use, and
// how often they exceed it. That they never send more than they may is promised by limiter-model.test.ts.

const HALF_HOUR = 30 * MINUTE
const START = Date.UTC(2026, 10, 20, 8, 30, 0, 250)

/** Both are within a burst of requests, some of which are on their way. */
const KILLED = [7 * MINUTE + 18_000, 19 * MINUTE + 36_000]

/**
 * Laravel's limiter as it was observed: a window that begins with the first request it counts, headers that do not show its end but for
 * 429s, and 429s that are not counted.
 */
function createFixedWindow(limit: number, names?: readonly string[]) {
  let end = 0
  let hits = 0
  return (now: number): { status: number; headers: Headers } => {
    if (now >= end) {
      // Its clock has whole seconds.
      end = Math.floor(now / 1000) * 1000 + MINUTE
      hits = 0
    }
    const isRefused = hits >= limit
    if (!isRefused) hits++
    const headers: Headers = {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(limit - hits),
      ...(isRefused && {
        'retry-after': String(Math.ceil((end - now) / 1000)),
        'x-ratelimit-reset': String(end / 1000),
      }),
    }
    const shown = Object.entries(headers).filter(([name]) => names?.includes(name) ?? true)
    return { status: isRefused ? 429 : 200, headers: Object.fromEntries(shown) }
  }
}

/** Numbers between 0 and 1 that look random and are the same for each run. */
function createRandom(): () => number {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

interface Traffic {
  limit: number
  rules?: Partial<RateRules>
  processes?: number
  /** Requests that each process has in flight at the same time; all of them want to send all the time. */
  senders?: number
  /** The most milliseconds on the way to the server, and back. */
  latency?: number
  /** The headers that the server sends; all, unless they are named. */
  headers?: readonly string[]
  /** Requests a minute by others on the same budget, evenly. */
  others?: number
}

async function simulate({
  limit,
  rules,
  processes = 1,
  senders = 8,
  latency = 150,
  headers,
  others = 0,
}: Traffic) {
  const clock = createSteppedClock(START)
  const store = createBudgetStore()
  const random = createRandom()
  const server = createFixedWindow(limit, headers)
  const never = new AbortController().signal
  let served = 0
  let throttled = 0
  for (let index = 0; index < others * 30; index++)
    void clock.sleep((index * MINUTE) / others + 700, never).then(() => server(clock.now()))

  async function sendUntil(end: number, { limiter }: ReturnType<typeof createScene>): Promise<void> {
    const onTheWay = () => clock.sleep(20 + random() * latency, never)
    const send = async () => {
      await onTheWay()
      const { status, headers: sent } = server(clock.now())
      if (status === 200) served++
      else throttled++
      await onTheWay()
      // Nothing that a killed process waits for ever comes.
      if (clock.now() >= end) await new Promise(() => {})
      return { announced: readRateHeaders(sent, clock.now()), isThrottled: status === 429 }
    }
    while (clock.now() < end) await limiter.send(send, { urgency: 'walk', observe: () => {}, signal: never })
  }

  let begun = 0
  for (const end of [...KILLED, HALF_HOUR]) {
    for (let process = 0; process < processes; process++) {
      const setting = createScene({ clock, store, slots: pLimit(senders), ...(rules && { rules }) })
      for (let sender = 0; sender < senders; sender++) void sendUntil(START + end, setting)
    }
    await clock.pass(end - begun)
    begun = end
  }
  return { served, throttled }
}

it.each<[string, Traffic, ours: number, used: number, most429s: number]>([
  ['one sender', { limit: 60, senders: 1 }, 60, 0.97, 1],
  ['slow senders', { limit: 60, latency: 3000 }, 60, 0.96, 1],
  ['a small limit', { limit: 5, senders: 4 }, 5, 0.97, 1],
  ['three processes', { limit: 300, processes: 3 }, 300, 0.97, 1],
  [
    'half of a limit, beside others',
    { limit: 60, processes: 3, others: 30, rules: { sharePercent: 50 } },
    30,
    0.97,
    0,
  ],
  ['the least of a limit', { limit: 60, senders: 2, rules: { sharePercent: 1 } }, 1, 0.96, 0],
  ['a ceiling of our own', { limit: 10_000, processes: 3, rules: { requestsPerMinute: 120 } }, 120, 0.97, 0],
  // Nothing is learned of a limit that is not announced, so each of its windows ends with 429s of all that are on their way then.
  ['a limit that nothing announces', { limit: 60, senders: 1, headers: [] }, 60, 0.83, 25],
  [
    'a limit that 429s alone announce',
    { limit: 60, processes: 3, headers: ['retry-after'] },
    60,
    0.97,
    30 * 18,
  ],
])(
  'half an hour uses a budget, and provokes hardly a 429: %s',
  async (_what, traffic, ours, used, most429s) => {
    const { served, throttled } = await simulate(traffic)

    expect(served / (ours * 30)).toBeGreaterThanOrEqual(used)
    expect(served).toBeLessThanOrEqual(ours * 31)
    expect(throttled).toBeLessThanOrEqual(most429s)
  },
)
