import type { LimitFunction } from 'p-limit'
import { JobError } from '../../errors.ts'
import type { Observe, RequestEvent, Urgency } from '../../sync/types.ts'
import { inWords } from '../../text.ts'
import type { Budget, RateRules } from './budget.ts'
import { allowedPerMinute, knownLimit } from './decision.ts'
import type { RateHeaders } from './headers.ts'
import { createPermits, type Permit, type PermitsOptions } from './permits.ts'
import { ROUNDING_MS } from './window.ts'

export interface RateLimiterOptions extends PermitsOptions {
  rules: RateRules & { maxWaitMs: number }
  /** Requests in flight at the same time, shared by all rate limiters. */
  slots: LimitFunction
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
}

export type RateLimiter = ReturnType<typeof createRateLimiter>

export interface WaitingRequest {
  urgency: Urgency
  observe: Observe<RequestEvent>
  signal: AbortSignal
}

export interface ResponseReport {
  /** For any response that does not ask for a pause. */
  answered(announced: RateHeaders): void
  throttled(announced: RateHeaders): void
}

type SendRequest<T> = (report: ResponseReport) => Promise<T>

type ReportWait = (reason: string, until: number) => void

/** Wrapped: `await` would unwrap the promise and wait for the response. */
interface Started<T> {
  result: Promise<T>
}

/** Processes that share a budget send again at different moments after a pause. */
const LONGEST_JITTER_MS = 900

/** Part of `closedUntil`; `maxWait` applies to the announced pause without it. */
const MARGIN_MS = ROUNDING_MS + LONGEST_JITTER_MS

/** How often a waiting request reads the budget again: another process may have changed it, or received the response that we wait for. */
const LOOK_AT_BUDGET_EVERY_MS = 1000
const LOOK_FOR_ANSWER_MS = 250

/**
 * Spends one budget of requests. All requests that share it pass here: refreshes first, older pages last, and otherwise in the
 * order in which they came.
 */
export function createRateLimiter(options: RateLimiterOptions) {
  const { rules, slots, now, sleep, random } = options
  const permits = createPermits(options)
  const line = createWaitingLine()
  /** Aborted to make the first in line look at the budget again. */
  let woken = new AbortController()

  const jitter = () => Math.min(LONGEST_JITTER_MS, Math.floor(random() * 1000))

  function refusalOf({ closedUntil }: Budget): JobError | null {
    const wait = closedUntil - now()
    if (wait <= rules.maxWaitMs + MARGIN_MS) return null
    return new JobError(
      'RATE_LIMITED',
      `the server asked for a pause, ${inWords(wait)} long, which is more than rateLimit.maxWait ` +
        `(${inWords(rules.maxWaitMs)}): nothing is sent before ${new Date(closedUntil).toISOString()}, and the next run ` +
        `after that continues from here (admin-mirror resume forgets the wait)`,
    )
  }

  const isOpenAsKnown = () => permits.decision(permits.known()).at <= now()

  async function untilOpen(reportWait: ReportWait, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      // Before the look, so that a response that comes after it ends the sleep.
      woken = new AbortController()
      const known = await permits.view()
      const refused = refusalOf(known)
      if (refused) throw refused
      const decision = permits.decision(known)
      if (decision.at <= now()) return
      if (decision.at < Number.POSITIVE_INFINITY) reportWait(decision.reason, decision.at)
      await permits.noteWait(decision)
      await untilLook(decision.at, signal)
    }
  }

  /** Sleeps until `at`, or until woken. */
  async function untilLook(at: number, signal: AbortSignal): Promise<void> {
    const most = at === Number.POSITIVE_INFINITY ? LOOK_FOR_ANSWER_MS : LOOK_AT_BUDGET_EVERY_MS
    try {
      await sleep(Math.max(0, Math.min(at - now(), most)), AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted) throw error
    }
  }

  /** Waits for a slot, then takes the permit: other budgets may hold all slots for a while. Null if no permit is left. */
  function startInSlot<T>(request: SendRequest<T>, signal: AbortSignal): Promise<Started<T> | null> {
    return new Promise((resolve, reject) => {
      const inSlot = async () => {
        const permit = signal.aborted ? null : await permits.take()
        // The signal may be aborted while the permit is written.
        if (permit && signal.aborted) permits.unused()
        if (!permit || signal.aborted) return resolve(null)
        const result = sendCounted(request, permit)
        resolve({ result })
        await result.catch(() => {})
      }
      slots(inSlot).catch(reject)
    })
  }

  async function sendCounted<T>(request: SendRequest<T>, permit: Permit): Promise<T> {
    let isReported = false
    const note = (how: () => void) => {
      isReported = true
      how()
      // Without a reason, Node makes an error with a stack for each response.
      woken.abort('a response came')
    }
    try {
      return await request({
        answered: (announced) => note(() => permits.answered(permit, announced)),
        throttled: (announced) => note(() => permits.throttled(announced, jitter())),
      })
    } finally {
      if (!isReported) note(() => permits.answered(permit, null))
      await permits.publish()
    }
  }

  /** Resolves when the request has left, so that all leave in the order in which they came. */
  async function inTurn<T>(
    request: SendRequest<T>,
    reportWait: ReportWait,
    signal: AbortSignal,
  ): Promise<Started<T>> {
    for (;;) {
      // No read: taking the permit fails if our view is out of date.
      const started = isOpenAsKnown() ? await startInSlot(request, signal) : null
      if (started) return started
      await untilOpen(reportWait, signal)
    }
  }

  /** Those behind the first in line wait for the same thing; tell them, too. */
  function reportWaitInLine(reportWait: ReportWait, arrived: number): void {
    const known = permits.known()
    const { at, reason } = permits.decision(known)
    if (at > arrived && at < Number.POSITIVE_INFINITY && !refusalOf(known)) reportWait(reason, at)
  }

  /** Runs `request` when the budget allows it. It must report the response's rate headers before its promise settles. */
  async function send<T>(request: SendRequest<T>, { urgency, observe, signal }: WaitingRequest): Promise<T> {
    const arrived = now()
    const reportWait = createWaitReporter(observe)
    if (line.isBusy()) reportWaitInLine(reportWait, arrived)
    try {
      const turn = line.join(urgency, () => inTurn(request, reportWait, signal))
      const started = await orAborted(turn, signal)
      // No `await`: `waited` is reported when the request has left.
      return started.result
    } finally {
      // The clock may have been set back meanwhile.
      observe({ kind: 'waited', ms: Math.max(0, now() - arrived) })
    }
  }

  return {
    send,
    /** The error of a job that must not begin, since the server wants a pause beyond `maxWaitMs`; or null. */
    refusal: () => permits.view().then(refusalOf),
    /** Requests a minute that may be sent, as far as it is known. */
    limit: () => allowedPerMinute(knownLimit(permits.known()), rules),
    flush: permits.flush,
  }
}

/** Reports a wait only if it differs from the last one. `until` is in epoch milliseconds. */
function createWaitReporter(observe: Observe<RequestEvent>): ReportWait {
  let last = ''
  return (reason, until) => {
    const wait = `${until} ${reason}`
    if (wait !== last) observe({ kind: 'wait', reason, until })
    last = wait
  }
}

/** Settles like the promise, or rejects once the signal is aborted. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

const BY_URGENCY: readonly Urgency[] = ['refresh', 'walk', 'older']

/** Runs one task at a time: the most urgent first, and others in the order in which they came. */
function createWaitingLine() {
  const waiting: Record<Urgency, (() => Promise<void>)[]> = { refresh: [], walk: [], older: [] }
  let isRunning = false

  async function runWaiting(): Promise<void> {
    isRunning = true
    for (let next = mostUrgent(); next; next = mostUrgent()) await next()
    isRunning = false
  }

  function mostUrgent(): (() => Promise<void>) | undefined {
    return BY_URGENCY.map((urgency) => waiting[urgency])
      .find((tasks) => tasks.length > 0)
      ?.shift()
  }

  return {
    join: <T>(urgency: Urgency, task: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        waiting[urgency].push(() => task().then(resolve, reject))
        if (!isRunning) void runWaiting()
      }),
    isBusy: () => isRunning,
  }
}
