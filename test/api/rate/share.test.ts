import pLimit from 'p-limit'
import { expect, it } from 'vitest'
import { type Headers, readRateHeaders } from '../../../src/api/rate/headers.ts'
import { createSteppedClock } from '../../helpers/clock.ts'
import { createRandom } from '../../simulation/random.ts'
import { createBudgetStore, createScene, MINUTE } from '../helpers/rate.ts'

// Real rate limiters over some minutes of simulated time, killed and restarted within a window: how much of a server's limit they use, and
// how often they exceed it. That they never send more than they may is promised by limiter-model.test.ts.

/** Minutes that are simulated. */
const TIME = 10
const START = Date.UTC(2026, 10, 20, 8, 30, 0, 250)

/** Within a burst of requests, some of which are on their way. */
const KILLED = 4 * MINUTE + 18_000

/**
 * Laravel's limiter as it was observed: a window that begins with the first request it counts, headers that do not show its end but for
 * 429s, and 429s that are not counted.
 */
function createFixedWindow(limit: number) {
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
    const retryAfter = isRefused && { 'retry-after': String(Math.ceil((end - now) / 1000)) }
    const counts = { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(limit - hits) }
    const reset = isRefused && { 'x-ratelimit-reset': String(end / 1000) }
    return { status: isRefused ? 429 : 200, headers: { ...counts, ...retryAfter, ...reset } }
  }
}

interface Traffic {
  limit: number
  sharePercent?: number
  processes?: number
  /** Requests a minute by others on the same budget, evenly. */
  others?: number
}

/** Requests that each process has in flight at the same time; all of them want to send all the time. */
const SENDERS = 8

async function simulate({ limit, sharePercent = 100, processes = 1, others = 0 }: Traffic) {
  const clock = createSteppedClock(START)
  const store = createBudgetStore()
  const random = createRandom(1)
  const server = createFixedWindow(limit)
  const never = new AbortController().signal
  let served = 0
  let throttled = 0
  for (let index = 0; index < others * TIME; index++)
    void clock.sleep((index * MINUTE) / others + 700, never).then(() => server(clock.now()))

  async function sendUntil(end: number, { limiter }: ReturnType<typeof createScene>): Promise<void> {
    const onTheWay = () => clock.sleep(20 + random.next() * 150, never)
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
  for (const end of [KILLED, TIME * MINUTE]) {
    for (let process = 0; process < processes; process++) {
      const setting = createScene({ clock, store, slots: pLimit(SENDERS), rules: { sharePercent } })
      for (let sender = 0; sender < SENDERS; sender++) void sendUntil(START + end, setting)
    }
    await clock.pass(end - begun)
    begun = end
  }
  return { served, throttled }
}

it.each<[string, Traffic, ours: number, most429s: number]>([
  ['three processes', { limit: 60, processes: 3 }, 60, 3],
  ['half of a limit, beside others', { limit: 60, sharePercent: 50, others: 30 }, 30, 0],
])('what all send uses a budget, and provokes hardly a 429: %s', async (_what, traffic, ours, most429s) => {
  const { served, throttled } = await simulate(traffic)

  expect(served / (ours * TIME)).toBeGreaterThanOrEqual(0.9)
  expect(served).toBeLessThanOrEqual(ours * (TIME + 1))
  expect(throttled).toBeLessThanOrEqual(most429s)
})
