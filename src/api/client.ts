import pLimit from 'p-limit'
import { TokenRefusedError } from '../errors.ts'
import type { BudgetStore, Filters, Job, Page, PageSource } from '../sync/types.ts'
import { onHold, shellWord } from '../text.ts'
import { createHttpGet, type HttpGet, type HttpOptions, isSuccess, type Response } from './http.ts'
import { readPage } from './page.ts'
import type { RateRules } from './rate/budget.ts'
import { type RateHeaders, readRateHeaders, serverTime } from './rate/headers.ts'
import {
  createRateLimiter,
  type RateLimiter,
  type RequestOptions,
  type ResponseReport,
} from './rate/limiter.ts'
import {
  ELSEWHERE,
  errorOfStatus,
  isFailure,
  isPage,
  redact,
  whatItSays,
  withPageContext,
} from './response-errors.ts'
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
  const { rate: rules, budgets: store, now, sleep } = options
  const get = simulated ?? createHttpGet(options)
  const slots = pLimit(options.concurrency)
  const limiters = new Map<string, RateLimiter>()

  return {
    open(job: Job, credentials: Credentials): PageSource {
      const { budgetKey } = credentials
      const limiter =
        limiters.get(budgetKey) ?? createRateLimiter({ budgetKey, rules, store, slots, now, sleep })
      limiters.set(budgetKey, limiter)
      return createPageSource(job, credentials, limiter, get, options)
    },
  }
}

function createPageSource(
  job: Job,
  { token, hold }: Credentials,
  limiter: RateLimiter,
  get: HttpGet,
  options: ApiOptions,
): PageSource {
  const headers = { authorization: `Bearer ${token}`, 'x-service-organization': job.organization.id }
  const { baseUrl, now } = options
  const { path, filters, total } = job.collection
  let clockAhead: number | null = null

  async function ask(page: number, signal: AbortSignal) {
    const sentAt = now()
    const note = (status: number | null, announced: RateHeaders | null) =>
      options.onAnswer?.({ job, page, status, ms: now() - sentAt, announced })
    try {
      const response = await get(pageAddress(baseUrl, path, filters, page), headers, signal)
      const announced = readRateHeaders(response.headers, now())
      const theirs = serverTime(response.headers)
      if (theirs !== null) clockAhead = now() - theirs
      note(response.status, announced)
      return { response, announced }
    } catch (error) {
      note(null, null)
      throw error
    }
  }

  /** Returns the checked page; null after an answer that asks for a pause, which the rate limiter waits for before it sends again. */
  async function request(page: number, report: ResponseReport, { observe, signal }: RequestOptions) {
    await hold.refresh()
    hold.check()
    observe({ kind: 'request' })
    const { response, announced } = await ask(page, signal)
    if (asksForPause(response.status, announced, options.rate.maxWaitMs)) {
      report.throttled(announced)
      observe({ kind: 'throttled' })
      return null
    }
    report.answered(isFailure(response.status) ? announced : { ...announced, retryAfterMs: null })
    if (response.status === 401) await refuseToken(response, token, hold, job, page)
    if (!isSuccess(response.status)) throw errorOfStatus(response, job, baseUrl)
    return readPage(response, announced, page, total)
  }

  async function attempt(page: number, waiting: RequestOptions): Promise<Page> {
    try {
      for (;;) {
        // Lets Node notice closed idle connections. Before `send`: nothing may delay a request once the rate limiter has given its permit.
        await options.yieldToEventLoop()
        hold.check()
        const read = await limiter.send((report) => request(page, report, waiting), waiting)
        if (read) return read
      }
    } catch (error) {
      throw withPageContext(error, job, page, token)
    }
  }

  return {
    refusal: limiter.refusal,
    limit: limiter.limit,
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

/** The address of a page: the filters in the order of the configuration, then the page. */
export function pageAddress(baseUrl: string, path: string, filters: Filters, page: number): URL {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters))
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one)
  query.append('page', String(page))
  return new URL(`${baseUrl}${path}?${query.toString()}`)
}

/** True for a 429, and for a failure with a pause beyond `maxWaitMs`, which the rate limiter must remember. */
export function asksForPause(status: number, { retryAfterMs }: RateHeaders, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
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
