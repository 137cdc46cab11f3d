import pLimit, { type LimitFunction } from 'p-limit'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import {
  createRateLimiter,
  type RateLimiter,
  type RequestOptions,
  type ResponseReport,
} from '../../../src/api/rate/limiter.ts'
import { MINUTE, NOTHING } from './budgets.ts'
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

export function createSetting({
  rules,
  store = createTestBudgetStore(),
  slots = pLimit(8),
  clock = createSteppedClock(),
  budgetKey = 'a',
}: Setting = {}) {
  const defaults = {
    requestsPerMinute: null,
    sharePercent: 100,
    fallbackWaitMs: MINUTE,
    maxWaitMs: 15 * MINUTE,
  }
  const { now, sleep } = clock
  const limiter = createRateLimiter({
    budgetKey,
    rules: { ...defaults, ...rules },
    store,
    slots,
    now,
    sleep,
  })
  return { limiter, clock, store, slots }
}

function notSentYet(): never {
  throw new Error('the request was not sent yet')
}

/** A request at a rate limiter: its reports, whether it is on its way, and functions that answer it. */
export function passing(
  limiter: RateLimiter,
  options: Partial<Pick<RequestOptions, 'signal' | 'urgency'>> = {},
) {
  const { observe, reports } = createObserver()
  let finish: (tell: (report: ResponseReport) => void) => void = notSentYet
  const one = {
    reports,
    sent: false,
    outcome: null as unknown,
    answer: (remaining: number, limit: number, resetMs: number | null = null) =>
      finish((report) => report.answered({ ...NOTHING, limit, remaining, resetMs })),
    succeed: () => finish((report) => report.answered(NOTHING)),
    throttle: (announcement: Partial<RateHeaders> = {}) =>
      finish((report) => {
        report.throttled({ ...NOTHING, ...announcement })
        throw new Error('429')
      }),
    fail: () =>
      finish(() => {
        throw new Error('network')
      }),
  }
  const send = (report: ResponseReport) => {
    one.sent = true
    return new Promise<string>((resolve, reject) => {
      finish = (tell) => {
        try {
          tell(report)
          resolve('the answer')
        } catch (error) {
          reject(error)
        }
      }
    })
  }
  limiter.send(send, { urgency: 'walk', signal: new AbortController().signal, ...options, observe }).then(
    (value) => {
      one.outcome = value
    },
    (error: unknown) => {
      one.outcome = error
    },
  )
  return one
}

/** One request and its response: the first of a budget leaves alone. */
export async function hear(limiter: RateLimiter): Promise<void> {
  const one = passing(limiter)
  await settle()
  one.succeed()
  await settle()
}
