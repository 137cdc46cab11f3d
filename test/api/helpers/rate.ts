import pLimit from 'p-limit'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import {
  createRateLimiter,
  type Heard,
  type RateLimiter,
  type RequestOptions,
} from '../../../src/api/rate/limiter.ts'
import type { HoldStore } from '../../../src/api/token-hold.ts'
import type { BudgetStore, Observe, RequestEvent, StoredBudget } from '../../../src/sync/types.ts'
import { createSteppedClock, settle } from '../../helpers/clock.ts'

export const NOW = Date.UTC(2026, 10, 20, 8, 30)
export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const DAY = 24 * 60 * MINUTE
/** How long a request counts at our ceiling, if it left at the beginning of half a second. */
export const OUR_MINUTE = MINUTE + 1000

export const RULES: RateRules = {
  requestsPerMinute: null,
  sharePercent: 100,
  refreshPercent: 10,
  fallbackWait: MINUTE,
}

export const NOTHING: RateHeaders = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

export function announced(limit: number, remaining: number, resetMs: number | null = null): RateHeaders {
  return { ...NOTHING, limit, remaining, resetMs }
}

const NOTHING_KEPT: StoredBudget = { closedUntil: 0, known: null, waitingFor: null, waitingUntil: 0 }

export type TestBudgetStore = ReturnType<typeof createBudgetStore>

/** Keeps budgets in memory, as the mirror does in its file. */
export function createBudgetStore() {
  const budgets = new Map<string, { kept: StoredBudget; version: number }>()
  const find = (scope: string) => budgets.get(scope) ?? { kept: NOTHING_KEPT, version: 0 }
  const set = (scope: string, kept: StoredBudget) =>
    void budgets.set(scope, { kept, version: find(scope).version + 1 })
  const store: BudgetStore = {
    read: async (scope) => {
      const { kept, version } = find(scope)
      return { closedUntil: kept.closedUntil, known: kept.known, version: String(version) }
    },
    compareAndSet: async (scope, version, next) => {
      // A server is asked with what is to be written, a file only once its lock is held: the worse of both.
      const written = next()
      if (version !== String(find(scope).version)) return null
      set(scope, written)
      return String(find(scope).version)
    },
  }
  return {
    ...store,
    kept: (scope: string) => find(scope).kept,
    /** Writes, as another process would. */
    change: (scope: string, changed: Partial<StoredBudget>) =>
      set(scope, { ...find(scope).kept, ...changed }),
  }
}

/** Keeps the hold of a token in memory, as the mirror does in its file. */
export function createHoldStore(reason: string | null = null): HoldStore & { lift(): void } {
  let held = reason
  return {
    heldReason: async () => held,
    hold: async (why) => {
      held = why
    },
    lift: () => {
      held = null
    },
  }
}

/** `reports`: all events, in order, without the names of their fields. */
export function createObserver() {
  const reports: (string | number)[][] = []
  const observe: Observe<RequestEvent> = (event) => reports.push(Object.values(event))
  return { reports, observe }
}

interface Setting {
  rules?: Partial<RateRules & { maxWait: number }>
  store?: TestBudgetStore
  slots?: ReturnType<typeof pLimit>
  clock?: ReturnType<typeof createSteppedClock>
  budgetKey?: string
}

export function createScene({
  rules,
  store = createBudgetStore(),
  slots = pLimit(8),
  clock = createSteppedClock(),
  budgetKey = 'a',
}: Setting = {}) {
  const { now, sleep } = clock
  const all = { ...RULES, maxWait: 15 * MINUTE, ...rules }
  const limiter = createRateLimiter({ budgetKey, rules: all, store, slots, now, sleep })
  return { limiter, clock, store }
}

/** A request at a rate limiter: its reports, whether it is on its way, and functions that answer it. */
export function passing(
  limiter: RateLimiter,
  options: Partial<Pick<RequestOptions, 'signal' | 'urgency'>> = {},
) {
  const { observe, reports } = createObserver()
  const { promise, resolve, reject } = Promise.withResolvers<Heard>()
  const answer = (heard: Partial<RateHeaders>, isThrottled = false) =>
    resolve({ announced: { ...NOTHING, ...heard }, isThrottled })
  const one = {
    reports,
    sent: false,
    outcome: null as unknown,
    succeed: () => answer({}),
    throttle: (heard: Partial<RateHeaders> = {}) => answer(heard, true),
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
