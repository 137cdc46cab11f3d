import pLimit from 'p-limit'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import { readRateHeaders } from '../../../src/api/rate/headers.ts'
import { createRateLimiter, type RateLimiter } from '../../../src/api/rate/limiter.ts'
import { createSteppedClock, type SteppedClock } from './clock.ts'
import type { Answered } from './fixed-window.ts'
import { createObserver } from './observer.ts'
import { createTestBudgetStore, type TestBudgetStore } from './stores.ts'

export interface Traffic {
  rules: RateRules
  /** Processes that share the budget. */
  processes?: number
  /** Requests that each process has in flight at the same time; all of them want to send all the time. */
  senders: number
  /** Milliseconds. */
  duration: number
  /** Between 0 and 1, evenly. */
  random: () => number
  /** On the way to the server, and as long on the way back: from the first to below the second, in milliseconds. */
  latency: readonly [number, number]
  /** Asked in the order in which requests arrive there. */
  server: (now: number) => Answered
  /** Requests by others on the same budget, by the time they arrive. */
  others?: readonly number[]
  /** When all processes are killed and others start in their place. */
  restarts?: readonly number[]
}

export interface Log {
  /** When each request left. */
  sent: number[]
  /** When each request was served with 200, by the server's clock. */
  served: number[]
  throttled: number
  /** Writes of all processes to the shared budget. */
  writes: number
}

const START = Date.UTC(2026, 10, 20, 8, 30, 0, 250)

/** Drives real rate limiters through simulated time. */
export async function simulate(traffic: Traffic): Promise<Log> {
  const { duration, others = [], restarts = [], server } = traffic
  const clock = createSteppedClock(START)
  const store = createTestBudgetStore()
  const log: Log = { sent: [], served: [], throttled: 0, writes: 0 }
  const never = new AbortController().signal
  for (const time of others) void clock.sleep(time, never).then(() => server(clock.now()))
  let begun = 0
  for (const end of [...restarts, duration]) {
    startProcesses(traffic, START + end, clock, store, log)
    await clock.pass(end - begun)
    begun = end
  }
  return { ...log, writes: store.writes() }
}

function startProcesses(
  traffic: Traffic,
  end: number,
  clock: SteppedClock,
  store: TestBudgetStore,
  log: Log,
): void {
  const { processes = 1, senders, rules } = traffic
  // Nothing that a killed process waits for ever comes.
  const untilKilled = <A extends unknown[], T>(task: (...args: A) => Promise<T>) => {
    return async (...args: A) => {
      const result = await task(...args)
      return clock.now() < end ? result : new Promise<T>(() => {})
    }
  }
  const sleep = untilKilled(clock.sleep)
  for (let process = 0; process < processes; process++) {
    const limiter = createRateLimiter({
      budgetKey: 'a',
      rules: { ...rules, maxWaitMs: 3_600_000 },
      store,
      slots: pLimit(senders),
      now: clock.now,
      sleep,
    })
    for (let sender = 0; sender < senders; sender++)
      void sendAllTheTime(limiter, traffic, { ...clock, sleep }, log)
  }
}

async function sendAllTheTime(
  limiter: RateLimiter,
  { latency, random, server }: Traffic,
  clock: SteppedClock,
  log: Log,
): Promise<void> {
  const never = new AbortController().signal
  const [least, most] = latency
  const onTheWay = () => clock.sleep(least + random() * (most - least), never)
  const { observe } = createObserver()
  for (;;) {
    await limiter.send(
      async (report) => {
        log.sent.push(clock.now() - START)
        await onTheWay()
        const { status, headers } = server(clock.now())
        if (status === 200) log.served.push(clock.now() - START)
        else log.throttled++
        await onTheWay()
        const announced = readRateHeaders(headers, clock.now())
        if (status === 200) report.answered(announced)
        else report.throttled(announced)
      },
      { urgency: 'walk', observe, signal: never },
    )
  }
}

/** Numbers between 0 and 1 that look random and are the same for each run (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
