import pLimit from 'p-limit'
import { RateLimitedError, TokenRefusedError } from '../errors.ts'
import type { BudgetStore, Job, Observe, Page, PageSource, RequestEvent } from '../sync/types.ts'
import { onHold, shellWord } from '../text.ts'
import { createHttpGet, type HttpGet, type HttpOptions, isSuccess, type Response } from './http.ts'
import { pageAddress } from './links.ts'
import { readPage } from './page.ts'
import { asksForPause, isFailure, type RateRules } from './rate/budget.ts'
import { type RateHeaders, readRateHeaders, serverTime } from './rate/headers.ts'
import {
  createRateLimiter,
  type RateLimiter,
  type RequestOptions,
  type ResponseReport,
} from './rate/limiter.ts'
import { redact } from './redact.ts'
import { ELSEWHERE, errorOfStatus, isPage, whatItSays, withPageContext } from './response-errors.ts'
import { type RetryRules, withRetry } from './retry.ts'
import type { TokenHold } from './token-hold.ts'

export interface ApiOptions extends HttpOptions {
  baseUrl: string
  /** Requests in flight at the same time. */
  concurrency: number
  rate: RateRules & { maxWaitMs: number }
  retry: RetryRules
  budgets: BudgetStore
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
  /** Resolves after the process has read all bytes that had arrived. */
  yieldToEventLoop: () => Promise<void>
  /** Called after each request. The note holds no token and no item data. */
  onAnswer?: ((answer: AnswerNote) => void) | undefined
}

export interface AnswerNote {
  job: Job
  page: number
  /** Null if no answer came; then `announced` is null, too. */
  status: number | null
  /** From the request to the end of the answer. Milliseconds. */
  ms: number
  announced: RateHeaders | null
}

export interface Credentials {
  token: string
  /** Of the rate budget: jobs with the same one share it. */
  budgetKey: string
  hold: TokenHold
}

/**
 * The Administration API, one page at a time. No other folder talks to the API.
 * @param simulated Replaces the network.
 */
export function createApi(options: ApiOptions, simulated?: HttpGet) {
  const get = simulated ?? createHttpGet(options)
  const slots = pLimit(options.concurrency)
  const limiters = new Map<string, RateLimiter>()
  /** Open sources of each rate limiter. */
  const users = new Map<RateLimiter, number>()

  function limiterOf(budgetKey: string): RateLimiter {
    const known = limiters.get(budgetKey)
    if (known) return known
    const { rate: rules, budgets: store, now, sleep, random } = options
    const limiter = createRateLimiter({ budgetKey, rules, store, slots, now, sleep, random })
    limiters.set(budgetKey, limiter)
    return limiter
  }

  return {
    open: (job: Job, credentials: Credentials): PageSource => {
      const limiter = limiterOf(credentials.budgetKey)
      users.set(limiter, (users.get(limiter) ?? 0) + 1)
      const close = async () => {
        const others = (users.get(limiter) ?? 1) - 1
        users.set(limiter, others)
        if (others === 0) await limiter.flush()
      }
      return { ...createPageSource(job, credentials, limiter, get, options), close }
    },
  }
}

function createPageSource(
  job: Job,
  { token, hold }: Credentials,
  limiter: RateLimiter,
  get: HttpGet,
  options: ApiOptions,
): Omit<PageSource, 'close'> {
  const headers = { authorization: `Bearer ${token}`, 'x-service-organization': job.organization.id }
  const { baseUrl } = options
  const { path, filters, total } = job.collection
  let clockAhead: number | null = null

  async function ask(page: number, signal: AbortSignal) {
    const sentAt = options.now()
    const note = (status: number | null, announced: RateHeaders | null) =>
      options.onAnswer?.({ job, page, status, ms: options.now() - sentAt, announced })
    try {
      const response = await get(pageAddress(baseUrl, path, filters, page), headers, signal)
      const announced = readRateHeaders(response.headers, options.now())
      const theirs = serverTime(response.headers)
      if (theirs !== null) clockAhead = options.now() - theirs
      note(response.status, announced)
      return { response, announced }
    } catch (error) {
      note(null, null)
      throw error
    }
  }

  async function request(
    page: number,
    report: ResponseReport,
    observe: Observe<RequestEvent>,
    signal: AbortSignal,
  ): Promise<Page> {
    await hold.refresh()
    hold.check()
    observe({ kind: 'request' })
    const { response, announced } = await ask(page, signal)
    if (asksForPause(response.status, announced, options.rate.maxWaitMs)) {
      report.throttled(announced)
      observe({ kind: 'throttled' })
      throw new RateLimitedError(`the server asks for fewer requests (${response.status})`)
    }
    report.answered(isFailure(response.status) ? announced : { ...announced, retryAfterMs: null })
    if (response.status === 401) await refuseToken(response, token, hold, job, page)
    if (!isSuccess(response.status)) throw errorOfStatus(response, announced, job, baseUrl)
    return readPage(response, announced, page, total)
  }

  async function attempt(page: number, waiting: RequestOptions): Promise<Page> {
    const { observe, signal } = waiting
    try {
      // Lets Node notice closed idle connections. Before `send`: nothing may delay a request once the rate limiter has given its permit.
      await options.yieldToEventLoop()
      hold.check()
      return await limiter.send((report) => request(page, report, observe, signal), waiting)
    } catch (error) {
      throw withPageContext(error, job, page, token)
    }
  }

  return {
    refusal: () => limiter.refusal(),
    limit: () => limiter.limit(),
    clockAhead: () => clockAhead,
    fetchPage: (page, observe, signal, urgency = 'walk') =>
      withRetry(() => attempt(page, { urgency, observe, signal }), {
        rules: options.retry,
        sleep: options.sleep,
        random: options.random,
        signal,
        onRetry: (error, delayMs) =>
          observe({ kind: 'retry', code: error.code, reason: error.message, delayMs }),
      }),
  }
}

async function refuseToken(
  response: Response,
  token: string,
  hold: TokenHold,
  job: Job,
  number: number,
): Promise<never> {
  const { name } = job.organization
  const page = isPage(response)
  // The reason is kept in the mirror, so it says where the refusal came from.
  const says = page ? redact(whatItSays(response), token) : ''
  const reason = `the token of organization ${name} was refused (401)${says}`
  await hold.refused(reason)
  throw new TokenRefusedError(
    `${reason} at ${job.collection.name} page ${number}; ${page ? `${ELSEWHERE}; else the token` : 'it'} was revoked, or is mistyped. ` +
      onHold(`admin-mirror resume --org ${shellWord(name)}`),
  )
}
