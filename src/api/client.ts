import pLimit from 'p-limit'
import { TokenRefusedError } from '../errors.ts'
import type { BudgetStore, Filters, Job, Page, PageSource } from '../sync/types.ts'
import { onHold, shellWord } from '../text.ts'
import { createHttpGet, type HttpGet, type HttpOptions, isSuccess, type Response } from './http.ts'
import { readPage } from './page.ts'
import type { RateRules } from './rate/budget.ts'
import { readRateHeaders, serverTime } from './rate/headers.ts'
import { createRateLimiter, type RateLimiter, type RequestOptions } from './rate/limiter.ts'
import { redact, withPageContext } from './redact.ts'
import { errorOfStatus, isFailure, textOf, whatItSays } from './response-errors.ts'
import { type RetryRules, withRetry } from './retry.ts'
import type { TokenHold } from './token-hold.ts'

export interface ApiOptions extends HttpOptions {
  baseUrl: string
  /** Requests in flight at the same time. */
  concurrency: number
  rate: RateRules & { maxWait: number }
  retry: RetryRules
  budgets: BudgetStore
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
  /** Resolves after the process has read all bytes that had arrived. */
  yieldToEventLoop: () => Promise<void>
  /** Called after each request; the status is null if no answer came. */
  onAnswer?: ((job: Job, status: number | null) => void) | undefined
}

export interface Credentials {
  token: string
  /** Of the rate budget: jobs with the same one share it. */
  budgetKey: string
  hold: TokenHold
}

/**
 * The Administration API, one page at a time. No other folder talks to the API.
 * @param get Sends one request; another one replaces the network.
 */
export function createApi(options: ApiOptions, get: HttpGet = createHttpGet(options)) {
  const { rate: rules, budgets: store, now, sleep } = options
  const slots = pLimit(options.concurrency)
  const limiters = new Map<string, RateLimiter>()

  return (job: Job, credentials: Credentials): PageSource => {
    const { budgetKey } = credentials
    const limiter =
      limiters.get(budgetKey) ?? createRateLimiter({ budgetKey, rules, store, slots, now, sleep })
    limiters.set(budgetKey, limiter)
    return createPageSource(job, credentials, limiter, get, options)
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
  const { baseUrl, now, sleep, random, retry, rate, onAnswer } = options
  const { path, filters, total } = job.collection
  const refusal = `the token of organization ${job.organization.name} was refused (401)`
  let clockAhead: number | null = null

  async function exchange(page: number, signal: AbortSignal): Promise<Response> {
    let status: number | null = null
    let held = Promise.resolve()
    // Before the body says more. If it cannot be written, `refuseToken` says so.
    const holdAtOnce = (received: number) => {
      if (received === 401) held = hold.refused(refusal).catch(() => {})
    }
    try {
      const response = await get(pageAddress(baseUrl, path, filters, page), headers, signal, holdAtOnce)
      status = response.status
      return response
    } finally {
      await held
      onAnswer?.(job, status)
    }
  }

  /** Sends one request; the token is held before another one can leave. */
  async function ask(page: number, { observe, signal }: RequestOptions) {
    await hold.refresh()
    hold.check()
    // It may have come meanwhile: what is counted as a request has left.
    signal.throwIfAborted()
    observe({ kind: 'request' })
    const response = await exchange(page, signal)
    const { status } = response
    if (status === 401) await refuseToken(response, page)
    const announced = readRateHeaders(response.headers, now())
    const theirs = serverTime(response.headers)
    if (theirs !== null) clockAhead = now() - theirs
    // Retry-After means a pause where the server fails; one beyond `maxWait` is as a 429.
    const pauseMs = status === 429 || isFailure(status) ? announced.retryAfterMs : null
    const isThrottled = status === 429 || (pauseMs ?? 0) > rate.maxWait
    return { response, announced: { ...announced, retryAfterMs: pauseMs }, isThrottled }
  }

  async function refuseToken(response: Response, page: number): Promise<never> {
    // It is kept in the mirror with what the answer says, which may come from a proxy.
    const reason = refusal + redact(whatItSays(textOf(response)), token)
    await hold.refused(reason)
    throw new TokenRefusedError(
      `${reason} at ${job.collection.name} page ${page}; it was revoked, or is mistyped, or a firewall or proxy refuses it. ` +
        onHold(`admin-mirror resume --org ${shellWord(job.organization.name)}`),
      hold.resume,
    )
  }

  async function attempt(page: number, waiting: RequestOptions): Promise<Page> {
    try {
      for (;;) {
        // Lets Node notice closed idle connections. Before `send`: nothing may delay a request once the rate limiter has given its permit.
        await options.yieldToEventLoop()
        hold.check()
        const { response, isThrottled } = await limiter.send(() => ask(page, waiting), waiting)
        if (isThrottled) waiting.observe({ kind: 'throttled' })
        else if (isSuccess(response.status)) return readPage(response, page, total)
        else throw errorOfStatus(response, job, baseUrl)
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
      withRetry(
        () => attempt(page, { urgency, observe, signal }),
        retry,
        random,
        async (delayMs, { code, message }) => {
          observe({ kind: 'retry', code, reason: message, delayMs })
          await sleep(delayMs, signal)
        },
      ),
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
