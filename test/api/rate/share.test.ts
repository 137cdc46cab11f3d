import { expect, it } from 'vitest'
import { MINUTE, RULES } from '../helpers/budgets.ts'
import { createFixedWindow } from '../helpers/fixed-window.ts'
import { createRandom, simulate, type Traffic } from '../helpers/traffic.ts'

// Real rate limiters, killed and restarted within a window, over half an hour of simulated time: how much of the budget they use, and how
// often they exceed it. That they never send more than they may is promised by limiter-model.test.ts.

const HALF_HOUR = 30 * MINUTE

/** Neither is at the beginning of a window. */
const RESTARTS = [10 * MINUTE + 17_000, 20 * MINUTE + 3000]

/** Both are within a burst of requests, some of which are on their way. */
const KILLED_IN_BURSTS = [7 * MINUTE + 18_000, 19 * MINUTE + 36_000]

/** Half of 60 a minute, evenly over the minute. */
const OTHERS = Array.from({ length: 30 * 30 }, (_, index) => index * 2000 + 700)

interface Case extends Partial<Traffic> {
  limit: number
  /** Whether the server counts its windows in whole seconds. */
  whole?: boolean
  /** The headers that it sends; all, unless they are named. */
  headers?: readonly string[]
  /** Requests a minute that are ours. */
  ours?: number
  /** How much of them is used, of 1. */
  used?: number
  /** 429s that are provoked, at most. */
  throttled?: number
}

it.each<[string, Case]>([
  ['one sender', { limit: 60, senders: 1 }],
  ['slow senders, windows of whole seconds', { limit: 60, senders: 8, latency: [20, 3000], whole: true }],
  ['a small limit', { limit: 5, senders: 4 }],
  ['three processes, restarted', { limit: 300, processes: 3, restarts: RESTARTS, whole: true }],
  [
    'one that is killed in bursts',
    { limit: 20, senders: 1, latency: [200, 1000], restarts: KILLED_IN_BURSTS },
  ],
  ['three killed in bursts', { limit: 60, latency: [20, 3000], processes: 3, restarts: KILLED_IN_BURSTS }],
  [
    'half of a limit',
    {
      limit: 60,
      ours: 30,
      processes: 3,
      restarts: KILLED_IN_BURSTS,
      rules: { ...RULES, sharePercent: 50 },
      throttled: 0,
    },
  ],
  [
    'the least of a limit',
    { limit: 60, ours: 1, senders: 2, rules: { ...RULES, sharePercent: 1 }, throttled: 0 },
  ],
  [
    'a ceiling of our own',
    {
      limit: 10_000,
      ours: 120,
      processes: 3,
      restarts: RESTARTS,
      rules: { ...RULES, requestsPerMinute: 120 },
    },
  ],
  [
    'half of a limit, beside others',
    {
      limit: 60,
      ours: 30,
      used: 0.9,
      processes: 3,
      others: OTHERS,
      rules: { ...RULES, sharePercent: 50 },
      throttled: 0,
    },
  ],
  [
    'a limit that another run has used up',
    { limit: 60, used: 0.94, processes: 3, others: OTHERS.map(() => 0).slice(0, 60), throttled: 3 },
  ],
  // Nothing is learned of a limit that is not announced (it may differ from minute to minute), so each of its windows ends with 429s:
  // of all that are on their way then. The pause after them, and the one request that goes first, are all that can be done.
  ['a limit that nothing announces', { limit: 60, used: 0.84, senders: 1, headers: [], throttled: 30 }],
  [
    'a limit that 429s alone announce',
    { limit: 60, used: 0.96, processes: 3, headers: ['retry-after'], throttled: 30 * 20 },
  ],
])('half an hour uses a budget, and provokes hardly a 429: %s', async (_what, given) => {
  const { limit, whole = false, headers, ours = limit, used = 0.97, throttled: most = 1, ...traffic } = given
  const window = createFixedWindow(limit, { whole })
  const server: Traffic['server'] = (now) => {
    const { status, headers: all } = window(now)
    return { status, headers: headers ? Object.fromEntries(headers.map((name) => [name, all[name]])) : all }
  }

  const { served, throttled, writes } = await simulate({
    rules: RULES,
    senders: 8,
    latency: [20, 150],
    duration: HALF_HOUR,
    random: createRandom(1),
    server,
    ...traffic,
  })

  expect(served.length / (ours * 30)).toBeGreaterThanOrEqual(used)
  expect(served.length).toBeLessThanOrEqual(ours * 31)
  expect(throttled).toBeLessThanOrEqual(most)
  // Under a ceiling of our own each permit is written, and hardly more.
  if (traffic.rules?.requestsPerMinute) expect(writes / served.length).toBeLessThan(1.2)
})
