import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../../errors.ts'
import type { BudgetStore, Observe, RequestEvent, Urgency } from '../../sync/types.ts'
import { inWords } from '../../text.ts'
import {
  afterAnswer,
  afterThrottle,
  asOfNow,
  type Budget,
  budgetOf,
  budgetText,
  FRESH,
  isCounted,
  type Permit,
  type RateRules,
  ROUNDING_MS,
  type Wait,
  waitFor,
  withPermit,
} from './budget.ts'
import { allowedPerMinute } from './decision.ts'
import type { RateHeaders } from './headers.ts'

export interface RateLimiterOptions {
  budgetKey: string
  rules: RateRules & { maxWaitMs: number }
  store: BudgetStore
  /** Requests in flight at the same time, shared by all rate limiters. */
  slots: LimitFunction
  now: () => number
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

/** Processes that share a budget send again at different moments after a pause. */
const LONGEST_JITTER_MS = 900

/** Part of `closedUntil`; `maxWait` applies to the announced pause without it. */
const MARGIN_MS = ROUNDING_MS + LONGEST_JITTER_MS

/** How often a waiting request reads the budget again, which another process may have changed; and the shortest wait that is written. */
const LOOK_EVERY_MS = 1000

/**
 * Spends one budget of requests. All requests that share it pass here: refreshes first, older pages last, and otherwise in the
 * order in which they came.
 */
export function createRateLimiter(options: RateLimiterOptions) {
  const { budgetKey, rules, store, slots, now, sleep, random } = options
  const line = createWaitingLine()
  const inTurn = pLimit(1)
  let last = { version: '', budget: FRESH }
  /** What has happened to the budget here and is not written yet. */
  let unwritten: ((budget: Budget) => Budget)[] = []
  let inFlight = 0
  /** Aborted to make the first in line look at the budget again. */
  let woken = new AbortController()
  let notedUntil = 0

  async function read(): Promise<void> {
    const { version, ...stored } = await store.read(budgetKey)
    if (version !== last.version) last = { version, budget: budgetOf(stored.known, stored.closedUntil) }
  }

  function known(): Budget {
    return asOfNow(
      unwritten.reduce((budget, change) => change(budget), last.budget),
      rules,
      now(),
    )
  }

  const waitNow = (budget = known()) => waitFor(budget, rules, now(), inFlight)

  /** Writes what is not written yet, and what `change` makes of it; `change` is called again if another process was faster. */
  async function write(change: (budget: Budget) => Budget, wait: Wait | null = null): Promise<void> {
    let version: string | null = null
    while (version === null) {
      let written = FRESH
      let changes = 0
      version = await store.compareAndSet(budgetKey, last.version, () => {
        changes = unwritten.length
        written = change(known())
        const { closedUntil } = written
        const [waitingFor, waitingUntil] = [wait?.reason ?? null, wait?.until ?? 0]
        return { closedUntil, known: budgetText(written), waitingFor, waitingUntil }
      })
      if (version === null) await read()
      else {
        last = { version, budget: written }
        unwritten = unwritten.slice(changes)
      }
    }
  }

  const flush = () => inTurn(async () => (unwritten.length > 0 ? write((budget) => budget) : undefined))

  /** Takes a permit for a request that leaves at once; returns null if none is free. */
  async function take(): Promise<{ permit: Permit } | null> {
    // A write fails if another process was faster. A permit that is not written needs a look at what others have written.
    if (last.version === '' || !isCounted(known(), rules)) await read()
    if (waitNow()) return null
    const permits: { permit: Permit }[] = []
    if (!isCounted(known(), rules)) permits.push({ permit: null })
    else
      await write((budget) => {
        permits.length = 0
        if (waitNow(budget)) return budget
        const next = withPermit(budget, rules, now())
        permits.push({ permit: next.window })
        return next
      })
    const [taken = null] = permits
    if (taken) inFlight++
    return taken
  }

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

  async function untilOpen(report: (wait: Wait) => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      // Before the look, so that a response that comes after it ends the sleep.
      woken = new AbortController()
      await inTurn(read)
      const refused = refusalOf(known())
      if (refused) throw refused
      const wait = waitNow()
      if (!wait) return
      report(wait)
      // Once for each wait: `status` shows it.
      const isNoted = wait.until === notedUntil || wait.until < now() + LOOK_EVERY_MS
      if (!isNoted && wait.until < Number.POSITIVE_INFINITY) {
        notedUntil = wait.until
        await inTurn(() => write((budget) => budget, wait))
      }
      await untilLook(wait.until - now(), signal)
    }
  }

  /** Sleeps for so long, until the next look, or until woken. */
  async function untilLook(ms: number, signal: AbortSignal): Promise<void> {
    try {
      await sleep(Math.max(0, Math.min(ms, LOOK_EVERY_MS)), AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted) throw error
    }
  }

  /** Waits for a slot, then takes the permit: other budgets may hold all slots for a while. Null if no permit is left. */
  function startInSlot<T>(
    request: SendRequest<T>,
    signal: AbortSignal,
  ): Promise<{ result: Promise<T> } | null> {
    return new Promise((resolve, reject) => {
      const inSlot = async () => {
        const taken = signal.aborted ? null : await inTurn(take)
        // The signal may be aborted while the permit is written. It is counted all the same.
        if (taken && signal.aborted) inFlight--
        if (!taken || signal.aborted) return resolve(null)
        const result = sendCounted(request, taken.permit)
        // Wrapped: `await` would unwrap the promise and wait for the response.
        resolve({ result })
        await result.catch(() => {})
      }
      slots(inSlot).catch(reject)
    })
  }

  async function sendCounted<T>(request: SendRequest<T>, permit: Permit): Promise<T> {
    let isReported = false
    const note = (change: (budget: Budget, at: number) => Budget) => {
      const at = now()
      isReported = true
      inFlight--
      unwritten.push((budget) => change(budget, at))
      // Without a reason, Node makes an error with a stack for each response.
      woken.abort('a response came')
    }
    const answered = (announced: RateHeaders | null) => {
      const others = inFlight - 1
      note((budget, at) => afterAnswer(budget, { at, permit, announced, inFlight: others }))
    }
    const throttled = (announced: RateHeaders) => {
      const jitterMs = Math.min(LONGEST_JITTER_MS, Math.floor(random() * 1000))
      note((budget, at) => afterThrottle(budget, announced, rules, at, jitterMs))
    }
    try {
      return await request({ answered, throttled })
    } finally {
      if (!isReported) answered(null)
      await tellOthers()
    }
  }

  /** Writes what other processes cannot know; all else is written with the next permit, or not at all where nothing is counted. */
  const tellOthers = () =>
    inTurn(async () => {
      const [before, after] = [asOfNow(last.budget, rules, now()), known()]
      const isWindowNews = (before.window === null) !== (after.window === null)
      if (isWindowNews || before.closedUntil !== after.closedUntil || before.throttled !== after.throttled)
        await write((budget) => budget)
      else if (!isCounted(after, rules)) unwritten = []
    })

  /** Resolves when the request has left, so that all leave in the order in which they came. */
  async function start<T>(request: SendRequest<T>, report: (wait: Wait) => void, signal: AbortSignal) {
    for (;;) {
      // No read: taking the permit fails if our view is out of date.
      const started = waitNow() ? null : await startInSlot(request, signal)
      if (started) return started
      await untilOpen(report, signal)
    }
  }

  /** Runs `request` when the budget allows it. It must report the response's rate headers before its promise settles. */
  async function send<T>(request: SendRequest<T>, { urgency, observe, signal }: WaitingRequest): Promise<T> {
    const arrived = now()
    const report = createWaitReporter(observe)
    // Those behind the first in line wait for the same thing.
    const wait = line.isBusy() ? waitNow() : null
    if (wait && !refusalOf(known())) report(wait)
    try {
      const started = await orAborted(
        line.join(urgency, () => start(request, report, signal)),
        signal,
      )
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
    refusal: () => inTurn(read).then(() => refusalOf(known())),
    /** Requests a minute that may be sent, as far as it is known. */
    limit: () => allowedPerMinute(known().window?.limit ?? null, rules),
    /** Call it when no request comes soon: writes all that is not written yet. */
    flush,
  }
}

/** Reports a wait only if it differs from the last one, and only until a known time. */
function createWaitReporter(observe: Observe<RequestEvent>): (wait: Wait) => void {
  let last = ''
  return ({ reason, until }) => {
    const wait = `${until} ${reason}`
    if (wait !== last && until < Number.POSITIVE_INFINITY) observe({ kind: 'wait', reason, until })
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

  const next = () =>
    BY_URGENCY.map((urgency) => waiting[urgency])
      .find((tasks) => tasks.length > 0)
      ?.shift()

  async function runWaiting(): Promise<void> {
    isRunning = true
    for (let task = next(); task; task = next()) await task()
    isRunning = false
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
