import pLimit, { type LimitFunction } from 'p-limit'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import {
  createRateLimiter,
  type Heard,
  type RateLimiter,
  type RequestOptions,
} from '../../../src/api/rate/limiter.ts'
import { MINUTE, NOTHING, RULES } from './budgets.ts'
import { createSteppedClock, type SteppedClock, settle } from './clock.ts'
import { createObserver } from './observer.ts'
import { createTestBudgetStore, type TestBudgetStore } from './stores.ts'

/** How long a request counts at our ceiling, if it left at the beginning of half a second. */
export const OUR_MINUTE = MINUTE + 1000

interface Setting {
  rules?: Partial<RateRules & { maxWaitMs: number }>
  store?: TestBudgetStore
  slots?: LimitFunction
  clock?: SteppedClock
  budgetKey?: string
}

export function createScene({
  rules,
  store = createTestBudgetStore(),
  slots = pLimit(8),
  clock = createSteppedClock(),
  budgetKey = 'a',
}: Setting = {}) {
  const { now, sleep } = clock
  const all = { ...RULES, maxWaitMs: 15 * MINUTE, ...rules }
  const limiter = createRateLimiter({ budgetKey, rules: all, store, slots, now, sleep })
  return { limiter, clock, store, slots }
}

/** A request at a rate limiter: its reports, whether it is on its way, and functions that answer it. */
export function passing(
  limiter: RateLimiter,
  options: Partial<Pick<RequestOptions, 'signal' | 'urgency'>> = {},
) {
  const { observe, reports } = createObserver()
  const { promise, resolve, reject } = Promise.withResolvers<Heard>()
  const answer = (announced: Partial<RateHeaders>, isThrottled = false) =>
    resolve({ announced: { ...NOTHING, ...announced }, isThrottled })
  const one = {
    reports,
    sent: false,
    outcome: null as unknown,
    answer: (remaining: number, limit: number) => answer({ limit, remaining }),
    succeed: () => answer({}),
    throttle: (announcement: Partial<RateHeaders> = {}) => answer(announcement, true),
    fail: () => reject(new Error('network')),
  }
  const send = () => {
    one.sent = true
    return promise
  }
  const end = (outcome: unknown) => {
    one.outcome = outcome
  }
  const { signal } = new AbortController()
  limiter.send(send, { urgency: 'walk', signal, ...options, observe }).then(end, end)
  return one
}

/** One request and its response: the first of a budget leaves alone. */
export async function hear(limiter: RateLimiter): Promise<void> {
  const one = passing(limiter)
  await settle()
  one.succeed()
  await settle()
}
