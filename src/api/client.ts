import pLimit from 'p-limit'
import { RateLimitedError, TokenRefusedError } from '../errors.ts'
import type { Job, Page, PageObserver, PageSource } from '../sync/types.ts'
import type { BudgetStore, RateRules } from './budget.ts'
import { createConnectionPool, readArrived } from './connections.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { createAddresses, createLinkReader } from './links.ts'
import { readPage } from './page.ts'
import { asFinal, placed } from './placed.ts'
import { readRateHeaders } from './rate-headers.ts'
import { type Answer, createRateLimiter, type RateLimiter } from './rate-limiter.ts'
import { asksForPause, isFailure, refusalOf } from './refusal.ts'
import { type RetryRules, withRetry } from './retry.ts'
import { createTokenGuard, type HoldMemory, type TokenGuard } from './token-guard.ts'

export interface ApiOptions {
  baseUrl: string
  linkHosts: readonly string[]
  timeoutMs: number
  maxResponseBytes: number
  userAgent: string
  /** Requests in flight at the same time. */
  concurrency: number
  rate: RateRules & { maxWaitMs: number }
  retry: RetryRules
  budgets: BudgetStore
  /** Names the process among those that share a budget. */
  processName: string
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
}

/** Who asks: a token, whose budget it spends, and where a refusal of it is remembered. */
export interface Credentials {
  token: string
  /** Names the rate budget; jobs with the same one share it. */
  scope: string
  guard: TokenGuard
}

export interface Api {
  guard(memory: HoldMemory): TokenGuard
  open(job: Job, credentials: Credentials): PageSource
}

/**
 * The Administration API, one page at a time. Nothing else of the network leaves this folder.
 * @param simulated What stands in for the network, for all lists.
 */
export function createApi(options: ApiOptions, simulated?: Exchange): Api {
  const openConnections = createConnectionPool()
  const slots = pLimit(options.concurrency)
  const limiters = new Map<string, RateLimiter>()
  /** Open sources of each rate limiter. */
  const users = new Map<RateLimiter, number>()

  function limiterOf(scope: string): RateLimiter {
    const known = limiters.get(scope)
    if (known) return known
    const { rate: rules, budgets: store, processName: by, now, sleep, random } = options
    const limiter = createRateLimiter({ scope, by, rules, store, slots, now, sleep, random })
    limiters.set(scope, limiter)
    return limiter
  }

  return {
    guard: createTokenGuard,
    open: (job, credentials) => {
      const limiter = limiterOf(credentials.scope)
      users.set(limiter, (users.get(limiter) ?? 0) + 1)
      const connections = openConnections()
      const network = simulated
        ? { exchange: simulated, prepare: async () => {} }
        : { exchange: createExchange(options, connections), prepare: readArrived }
      const close = async () => {
        connections.close()
        const others = (users.get(limiter) ?? 1) - 1
        users.set(limiter, others)
        if (others === 0) await limiter.rest()
      }
      return { ...createPageSource(job, credentials, limiter, network, options), close }
    },
  }
}

function createPageSource(
  job: Job,
  { token, guard }: Credentials,
  limiter: RateLimiter,
  { exchange, prepare }: { exchange: Exchange; prepare: () => Promise<void> },
  options: ApiOptions,
): Omit<PageSource, 'close'> {
  const headers = { authorization: `Bearer ${token}`, 'x-service-organization': job.organization.id }
  const { baseUrl, linkHosts, maxResponseBytes } = options
  const { path, filters } = job.collection
  const addressOf = createAddresses({ baseUrl, path, filters })
  const readLink = createLinkReader({ baseUrl, path, filters, linkHosts })
  const rules = { maxResponseBytes, readLink }

  async function ask(
    page: number,
    answer: Answer,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<Page> {
    guard.check()
    observer.onRequest()
    const response = await exchange(addressOf(page), headers, signal)
    const told = readRateHeaders(response.headers, options.now())
    if (asksForPause(response.status, told, options.rate.maxWaitMs)) {
      answer.throttled(told)
      observer.onThrottled()
      throw new RateLimitedError(`the server asks for fewer requests (${response.status})`)
    }
    answer.accepted(isFailure(response.status) ? told : { ...told, retryAfterMs: null })
    await judgeToken(response.status, guard, job, page)
    if (response.status < 200 || response.status > 299) throw refusalOf(response, told, job, baseUrl)
    return readPage(response, told, page, rules)
  }

  async function attempt(page: number, observer: PageObserver, signal: AbortSignal): Promise<Page> {
    try {
      // Before the gate, since nothing may come between its word and the request.
      await prepare()
      await guard.enter()
      return await limiter.pass((answer) => ask(page, answer, observer, signal), observer, signal)
    } catch (error) {
      const known = placed(error, job, page, token)
      throw guard.isTrying() ? asFinal(known) : known
    } finally {
      guard.undecided()
    }
  }

  return {
    refusal: () => limiter.refusal(),
    fetchPage: (page, observer, signal) =>
      withRetry(() => attempt(page, observer, signal), {
        rules: options.retry,
        sleep: options.sleep,
        random: options.random,
        signal,
        onRetry: (error, delayMs) => observer.onRetry(error.message, delayMs),
      }),
  }
}

async function judgeToken(status: number, guard: TokenGuard, job: Job, page: number): Promise<void> {
  const { name } = job.organization
  if (status === 401) {
    const reason = `the token of organization ${name} was refused (401)`
    await guard.refused(reason)
    throw new TokenRefusedError(
      `${reason} at ${job.collection.name} page ${page}; it was revoked, or is mistyped. Nothing more is sent with it. ` +
        `Put a new token into the configuration, or run "admin-mirror resume --org ${name}" if it is valid again`,
    )
  }
  if ((status >= 200 && status <= 299) || status === 403) await guard.accepted()
}
