import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../../errors.ts'
import type { BudgetStore, Observe, RequestEvent, Urgency } from '../../sync/types.ts'
import { inWords } from '../../text.ts'
import {
  afterAnswer,
  afterThrottle,
  allowedPerMinute,
  asOfNow,
  type Budget,
  budgetOf,
  budgetText,
  FRESH,
  type RateRules,
  ROUNDING_MS,
  type Wait,
  waitFor,
  withPermit,
} from './budget.ts'
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

export interface RequestOptions {
  urgency: Urgency
  observe: Observe<RequestEvent>
  signal: AbortSignal
}

export interface ResponseReport {
  /** For any response that does not ask for a pause. */
  answered(announced: RateHeaders): void
  throttled(announced: RateHeaders): void
}

/** A request that waits for its permit. */
interface Waiting {
  urgency: Urgency
  report(wait: Wait): void
  permit: PromiseWithResolvers<Permit>
}

interface Permit {
  /** `begunAt` of the window in which it was taken; null if none is known. */
  windowAt: number | null
  /** Frees its slot. */
  release(): void
}

/** Processes that share a budget send again at different moments after a pause. */
const LONGEST_JITTER_MS = 900

/** Part of `closedUntil`; `maxWait` applies to the announced pause without it. */
const MARGIN_MS = ROUNDING_MS + LONGEST_JITTER_MS

/** How often a waiting request reads the budget again, which another process may have changed; and the shortest wait that is told. */
const LOOK_EVERY_MS = 1000

const BY_URGENCY: readonly Urgency[] = ['refresh', 'walk', 'older']

/**
 * Spends one budget of requests. All requests that share it pass here: refreshes first, older pages last, and otherwise in the
 * order in which they came. Each takes its permit by one compare-and-set on the budget's row.
 */
export function createRateLimiter(options: RateLimiterOptions) {
  const { budgetKey, rules, store, slots, now, sleep, random } = options
  const line = new Set<Waiting>()
  /** One use of the row after another. */
  const inTurn = pLimit(1)
  let last = { version: '', budget: FRESH }
  /** What answers showed here, and is written with the next permit. */
  let unwritten: ((budget: Budget) => Budget)[] = []
  let isServing = false
  /** Aborted to make whoever waits look at the budget again. */
  let woken = new AbortController()
  let notedUntil = 0

  async function read(): Promise<void> {
    const { version, ...stored } = await store.read(budgetKey)
    if (version !== last.version) last = { version, budget: budgetOf(stored.known, stored.closedUntil) }
  }

  function known(): Budget {
    const budget = unwritten.reduce((changed, change) => change(changed), last.budget)
    return asOfNow(budget, rules, now())
  }

  /** Tries to write what `change` makes of the budget; if another process was faster, reads what that wrote, and returns false. */
  async function tryWrite(change: (budget: Budget) => Budget, wait: Wait | null = null): Promise<boolean> {
    let written = FRESH
    let changes = 0
    const version = await store.compareAndSet(budgetKey, last.version, () => {
      changes = unwritten.length
      written = change(known())
      const [waitingFor, waitingUntil] = [wait?.reason ?? null, wait?.until ?? 0]
      return { closedUntil: written.closedUntil, known: budgetText(written), waitingFor, waitingUntil }
    })
    if (version === null) {
      await read()
      return false
    }
    last = { version, budget: written }
    unwritten = unwritten.slice(changes)
    return true
  }

  /** Writes what is not written yet. */
  async function write(wait: Wait | null = null): Promise<void> {
    let isWritten = false
    while (!isWritten) isWritten = await tryWrite((budget) => budget, wait)
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

  const first = () =>
    BY_URGENCY.flatMap((urgency) => [...line].filter((one) => one.urgency === urgency)).at(0)

  const waitOf = ({ urgency }: Waiting) => waitFor(known(), rules, now(), urgency)

  /** Lets requests leave one after another, as long as any wait. */
  async function serve(): Promise<void> {
    isServing = true
    for (let one = first(); one; one = first()) {
      try {
        if (await isOpenFor(one)) await letLeave()
      } catch (error) {
        one.permit.reject(error)
        line.delete(one)
      }
    }
    isServing = false
  }

  /** False once it has waited for a while, or another request came: then the first in line may be another one. */
  async function isOpenFor(one: Waiting): Promise<boolean> {
    // Before the look, so that a response that comes after it ends the sleep.
    woken = new AbortController()
    // A budget that is open needs no look at the row: a permit cannot be taken from an old one.
    if (last.version === '' || waitOf(one)) await inTurn(read)
    const refused = refusalOf(known())
    if (refused) throw refused
    const wait = waitOf(one)
    if (!wait) return true
    const isLong = wait.until >= now() + LOOK_EVERY_MS && wait.until < Number.POSITIVE_INFINITY
    if (isLong) for (const other of line) other.report(wait)
    if (isLong && wait.until !== notedUntil) {
      notedUntil = wait.until
      // `status` shows it.
      await inTurn(() => write(wait))
    }
    const ms = Math.max(0, Math.min(wait.until - now(), LOOK_EVERY_MS))
    await sleep(ms, woken.signal).catch((error: unknown) => {
      if (!woken.signal.aborted) throw error
    })
    return false
  }

  /** Waits for a slot, then takes the permit: other budgets may hold all slots for a while. */
  async function letLeave(): Promise<void> {
    const release = await freeSlot(slots)
    const one = first()
    const permit =
      one &&
      (await inTurn(() => take(one)).catch((error: unknown) => {
        release()
        throw error
      }))
    // The signal may be aborted while the permit is written. It is counted all the same.
    if (one && permit && line.delete(one)) one.permit.resolve({ ...permit, release })
    else release()
  }

  /** Takes a permit for a request that leaves at once; null if none is free. */
  async function take(one: Waiting): Promise<Omit<Permit, 'release'> | null> {
    let taken: Omit<Permit, 'release'> | null = null
    const change = (budget: Budget): Budget => {
      // Time passed while the row's lock was waited for.
      const isFree = !waitFor(budget, rules, now(), one.urgency)
      const next = isFree ? withPermit(budget, rules, now(), one.urgency) : budget
      taken = isFree ? { windowAt: next.window?.begunAt ?? null } : null
      return next
    }
    while (!waitOf(one)) if (await tryWrite(change)) return taken
    return null
  }

  /** Runs `request` when the budget allows it. It must report the response's rate headers before its promise settles. */
  async function send<T>(
    request: (report: ResponseReport) => Promise<T>,
    { urgency, observe, signal }: RequestOptions,
  ): Promise<T> {
    const arrived = now()
    const one: Waiting = {
      urgency,
      report: createWaitReporter(observe),
      permit: Promise.withResolvers(),
    }
    const stop = () => {
      line.delete(one)
      one.permit.reject(signal.reason)
      woken.abort('a request was stopped')
    }
    line.add(one)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    woken.abort('a request came')
    if (!isServing) void serve()
    try {
      return sendCounted(request, await one.permit.promise)
    } finally {
      signal.removeEventListener('abort', stop)
      // The clock may have been set back meanwhile.
      observe({ kind: 'waited', ms: Math.max(0, now() - arrived) })
    }
  }

  async function sendCounted<T>(
    request: (report: ResponseReport) => Promise<T>,
    { windowAt, release }: Permit,
  ): Promise<T> {
    let isReported = false
    const note = (change: (budget: Budget, at: number) => Budget) => {
      const at = now()
      isReported = true
      unwritten.push((budget) => change(budget, at))
      // Without a reason, Node makes an error with a stack for each response.
      woken.abort('a response came')
    }
    const answered = (announced: RateHeaders | null) =>
      note((budget, at) => afterAnswer(budget, { at, windowAt, announced }, rules))
    const throttled = (announced: RateHeaders) => {
      const jitterMs = Math.min(LONGEST_JITTER_MS, Math.floor(random() * 1000))
      note((budget, at) => afterThrottle(budget, announced, rules, at, jitterMs))
    }
    try {
      return await request({ answered, throttled })
    } finally {
      if (!isReported) answered(null)
      await inTurn(tellOthers).finally(release)
    }
  }

  /** Writes at once what keeps other processes from sending, or no longer does. */
  async function tellOthers(): Promise<void> {
    const [before, after] = [asOfNow(last.budget, rules, now()), known()]
    if (before.closedUntil !== after.closedUntil || before.aloneUntil !== after.aloneUntil) await write()
  }

  return {
    send,
    /** The error of a job that must not begin, since the server wants a pause beyond `maxWaitMs`; or null. */
    refusal: () => inTurn(read).then(() => refusalOf(known())),
    /** Requests a minute that may be sent, as far as it is known. */
    limit: () => allowedPerMinute(known().window?.limit ?? null, rules),
    /** Call it when no request comes soon: writes all that is not written yet. */
    flush: () => inTurn(async () => (unwritten.length > 0 ? write() : undefined)),
  }
}

/** Reports a wait only if it differs from the last one. */
function createWaitReporter(observe: Observe<RequestEvent>): (wait: Wait) => void {
  let last = ''
  return ({ reason, until }) => {
    const wait = `${until} ${reason}`
    if (wait !== last) observe({ kind: 'wait', reason, until })
    last = wait
  }
}

/** Resolves once a slot is free, with what frees it again. */
function freeSlot(slots: LimitFunction): Promise<() => void> {
  return new Promise((resolve) => void slots(() => new Promise<void>((free) => resolve(free))))
}
