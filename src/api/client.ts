import pLimit from 'p-limit'
import { JobError, type KnownError, PassingError, ThrottledError, TokenRefusedError } from '../errors.ts'
import type { Job, Page, PageObserver, PageSource } from '../sync/types.ts'
import { printable } from '../text.ts'
import { type Envelope, EnvelopeError, readEnvelope } from './envelope.ts'
import { createExchange, type Exchange, type Response } from './exchange.ts'
import { pageQuery, readNextLink } from './links.ts'
import { type Answer, createRateGate, type GateMemory, type RateGate } from './rate-gate.ts'
import { type Announcement, readRateHeaders } from './rate-headers.ts'
import type { RateRules } from './rate-window.ts'
import { type RetryRules, withRetry } from './retry.ts'
import { scrub } from './scrub.ts'
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
  gateMemory: GateMemory
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

/** The Administration API, one page at a time. Nothing else of the network leaves this folder. */
export function createApi(options: ApiOptions): Api {
  const exchange = createExchange(options)
  const slots = pLimit(options.concurrency)
  const gates = new Map<string, RateGate>()

  function gateOf(scope: string): RateGate {
    const known = gates.get(scope)
    if (known) return known
    const { rate, gateMemory, now, sleep, random } = options
    const gate = createRateGate({ scope, rules: rate, memory: gateMemory, slots, now, sleep, random })
    gates.set(scope, gate)
    return gate
  }

  return {
    guard: createTokenGuard,
    open: (job, credentials) =>
      createPageSource(job, credentials, gateOf(credentials.scope), exchange, options),
  }
}

function createPageSource(
  job: Job,
  { token, guard }: Credentials,
  gate: RateGate,
  exchange: Exchange,
  options: ApiOptions,
): PageSource {
  const headers = { authorization: `Bearer ${token}`, 'x-service-organization': job.organization.id }

  async function ask(
    page: number,
    answer: Answer,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<Page> {
    guard.check()
    observer.onRequest()
    const response = await exchange(addressOf(job, page, options.baseUrl), headers, signal)
    const told = readRateHeaders(response.headers, options.now())
    if (asksForPause(response.status, told, options.rate.maxWaitMs)) {
      answer.throttled(told)
      observer.onThrottled()
      throw new ThrottledError(`the server asks for fewer requests (${response.status})`)
    }
    answer.accepted(told)
    judgeToken(response.status, guard, job, page)
    if (response.status < 200 || response.status > 299) throw refusalOf(response, told, job, options.baseUrl)
    return readPage(response, told, job, page, options)
  }

  async function attempt(page: number, observer: PageObserver, signal: AbortSignal): Promise<Page> {
    try {
      await guard.enter()
      return await gate.pass((answer) => ask(page, answer, observer, signal), observer, signal)
    } catch (error) {
      const known = placed(error, job, page, token)
      throw guard.isTrying() ? asFinal(known) : known
    } finally {
      guard.undecided()
    }
  }

  return {
    refusal: () => gate.refusal(),
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

function addressOf(job: Job, page: number, baseUrl: string): URL {
  const url = new URL(baseUrl + job.collection.path)
  url.search = pageQuery(job.collection.filters, page).toString()
  return url
}

/** A 5xx that asks for a longer silence than we wait for is a matter of the gate as well, which remembers the silence. */
function asksForPause(status: number, { retryAfterMs }: Announcement, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
}

function isFailure(status: number): boolean {
  return status === 408 || status >= 500
}

function judgeToken(status: number, guard: TokenGuard, job: Job, page: number): void {
  const { name } = job.organization
  if (status === 401) {
    const reason = `the token of organization ${name} was refused (401)`
    guard.refused(reason)
    throw new TokenRefusedError(
      `${reason} at ${job.collection.name} page ${page}; it was revoked, or is mistyped. Nothing more is sent with it. ` +
        `Put a new token into the configuration, or run "admin-mirror resume --org ${name}" if it is valid again`,
    )
  }
  if ((status >= 200 && status <= 299) || status === 403) guard.accepted()
}

/** What a status other than 2xx, 401 and 429 means. */
function refusalOf(response: Response, told: Announcement, job: Job, baseUrl: string): KnownError {
  const { status } = response
  const says = serverMessage(response)
  const { id } = job.organization
  if (status === 400) {
    return new JobError('BAD_REQUEST', `the server calls the request wrong (400)${says}; look at the filters`)
  }
  if (status === 403) {
    return new JobError(
      'FORBIDDEN',
      `the token's user is no member of this organization (403)${says}; let the user join it, or look at the token and the id ${id}`,
    )
  }
  if (status === 404) {
    return new JobError(
      'ORGANIZATION_NOT_FOUND',
      `not found (404)${says}; either the organization's id is wrong (${id}) or the address (${baseUrl}${job.collection.path})`,
    )
  }
  if (isFailure(status)) {
    return new PassingError('SERVER_ERROR', `the server failed (${status})${says}`, told.retryAfterMs)
  }
  const isRedirect = status >= 300 && status <= 399
  return new JobError(
    'UNEXPECTED_STATUS',
    isRedirect
      ? `the server redirects (${status}), which is never followed; look at api.baseUrl`
      : `the server answered ${status}${says}`,
  )
}

/** The `message` of a JSON error body; bodies themselves are never shown, since debug pages hold anything. */
function serverMessage(response: Response): string {
  if (response.body.length > 100_000) return ''
  try {
    const { message } = JSON.parse(new TextDecoder().decode(response.body))
    return typeof message === 'string' && message !== '' ? ` and says: ${printable(message)}` : ''
  } catch {
    return ''
  }
}

function readPage(response: Response, told: Announcement, job: Job, page: number, options: ApiOptions): Page {
  const envelope = readEnvelope(response.body)
  const paging = envelope.paging
  if (paging && paging.currentPage !== null && paging.currentPage !== page) {
    throw new EnvelopeError(`asked for page ${page}, and page ${paging.currentPage} was answered`)
  }
  if (!paging && page > 1) {
    throw new EnvelopeError(
      `asked for page ${page}, and a list without pages was answered: the API no longer pages this list; ` +
        'run backfill --restart or wait for resumeWithin',
    )
  }
  return {
    number: page,
    items: envelope.items,
    next: nextPage(envelope, job, page, options),
    total: paging?.total ?? null,
    lastPage: paging?.lastPage ?? null,
    paginated: paging !== null,
    announcedLimit: told.limit || null,
  }
}

function nextPage(envelope: Envelope, job: Job, currentPage: number, options: ApiOptions): number | null {
  const next = envelope.paging ? envelope.paging.next : null
  if (next === null) return null
  if (next === undefined)
    throw new JobError('LINK_REFUSED', 'links.next is missing, so the end of the list cannot be told')
  const { baseUrl, linkHosts } = options
  const { path, filters } = job.collection
  const verdict = readNextLink(next, { baseUrl, path, filters, linkHosts, currentPage })
  if ('refused' in verdict) throw new JobError('LINK_REFUSED', verdict.refused)
  return verdict.page
}

/** Nothing is tried again on a token that is held. */
function asFinal(error: unknown): unknown {
  const isPassing = error instanceof PassingError || error instanceof ThrottledError
  return isPassing ? new JobError(error.code, error.message) : error
}

/** The same error with its place in front, and the token scrubbed from whatever a server may have echoed. */
function placed(error: unknown, job: Job, page: number, token: string): unknown {
  const place = `${job.organization.name} ${job.collection.name} page ${page}`
  const message = (text: string) => `${place}: ${scrub(text, token)}`
  if (error instanceof EnvelopeError) {
    return error.passing
      ? new PassingError('BAD_RESPONSE', message(error.message))
      : new JobError('BAD_RESPONSE', message(error.message))
  }
  if (error instanceof PassingError)
    return new PassingError(error.code, message(error.message), error.retryAfterMs)
  if (error instanceof ThrottledError) return new ThrottledError(message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message))
  return error
}
