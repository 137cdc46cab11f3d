import pLimit, { type LimitFunction } from 'p-limit'
import { JobError } from '../errors.ts'
import type { PageObserver } from '../sync/types.ts'
import { inWords } from '../text.ts'
import type { Budget, BudgetStore, RateRules } from './budget.ts'
import { createPermits, type Permit } from './permits.ts'
import { decide } from './rate-decision.ts'
import type { RateHeaders } from './rate-headers.ts'
import { createTell, orAborted, type Tell } from './waiting.ts'

export interface RateLimiterOptions {
  scope: string
  /** Names the process among those that share the budget. */
  by: string
  rules: RateRules & { maxWaitMs: number }
  store: BudgetStore
  /** Requests in flight at the same time, shared by all rate limiters. */
  slots: LimitFunction
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
}

/** Spends one budget of requests: all that share it pass here before each request, in the order they came. */
export interface RateLimiter {
  /** Runs `send` when the budget allows it; `send` reports what the answer announced before it settles. */
  pass<T>(send: (answer: Answer) => Promise<T>, observer: PageObserver, signal: AbortSignal): Promise<T>
  /** Why a job should not even begin: the server wants a longer silence than we are willing to wait for. */
  refusal(): Promise<JobError | null>
  /** Called when no request is to come soon: writes what other processes do not know yet. */
  rest(): Promise<void>
}

export interface Answer {
  accepted(announced: RateHeaders): void
  throttled(announced: RateHeaders): void
}

interface Started<T> {
  result: Promise<T>
}

/** Another process may have changed the budget, or have had the answer that is waited for. */
const LOOK_EVERY_MS = 1000
const LOOK_FOR_ANSWER_MS = 250

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { rules, slots, now, sleep, random } = options
  const permits = createPermits(options)
  const turns = pLimit(1)
  /** Its abort lets the first in line look again. */
  let woken = new AbortController()

  function refusalOf({ closedUntil }: Budget): JobError | null {
    const wait = closedUntil - now()
    if (wait <= rules.maxWaitMs) return null
    return new JobError(
      'RATE_LIMITED',
      `the server asked for a pause, ${inWords(wait)} long, which is more than rateLimit.maxWait ` +
        `(${inWords(rules.maxWaitMs)}): nothing is sent before ${new Date(closedUntil).toISOString()}, and the next run ` +
        `after that goes on from here (admin-mirror resume forgets the wait)`,
    )
  }

  async function untilOpen(tell: Tell, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      // An answer that comes after this look must not be slept through.
      woken = new AbortController()
      const known = await permits.view()
      const refused = refusalOf(known)
      if (refused) throw refused
      const decision = decide(known, rules, now())
      if (decision.at <= now()) return
      if (decision.at < Number.POSITIVE_INFINITY) tell(decision.reason, decision.at)
      await permits.noteWait(decision)
      await untilLook(decision.at, signal)
    }
  }

  /** Sleeps until then, or until there is a reason to look again. */
  async function untilLook(at: number, signal: AbortSignal): Promise<void> {
    const most = at === Number.POSITIVE_INFINITY ? LOOK_FOR_ANSWER_MS : LOOK_EVERY_MS
    try {
      await sleep(Math.max(0, Math.min(at - now(), most)), AbortSignal.any([signal, woken.signal]))
    } catch (error) {
      if (!woken.signal.aborted) throw error
    }
  }

  /** Other budgets may hold all slots for a while, so the permit is taken in the slot; null if there is none any more. */
  function startInSlot<T>(
    send: (answer: Answer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<Started<T> | null> {
    return new Promise((resolve, reject) => {
      const inSlot = async () => {
        const permit = signal.aborted ? null : await permits.take()
        // The signal may come while the permit is written.
        if (permit && signal.aborted) permits.unused()
        if (!permit || signal.aborted) return resolve(null)
        const result = sendCounted(send, permit)
        resolve({ result })
        await result.catch(() => {})
      }
      slots(inSlot).catch(reject)
    })
  }

  async function sendCounted<T>(send: (answer: Answer) => Promise<T>, permit: Permit): Promise<T> {
    let isReported = false
    const report = (how: () => void) => {
      isReported = true
      how()
      woken.abort()
    }
    try {
      return await send({
        accepted: (announced) => report(() => permits.answered(permit, announced)),
        throttled: (announced) => report(() => permits.throttled(announced, Math.floor(random() * 1000))),
      })
    } finally {
      if (!isReported) report(() => permits.answered(permit, null))
      await permits.publish()
    }
  }

  /** The next in line has its turn as soon as this one is on its way, so that all leave in the order they came. */
  async function inTurn<T>(
    send: (answer: Answer) => Promise<T>,
    tell: Tell,
    signal: AbortSignal,
  ): Promise<Started<T>> {
    for (;;) {
      await untilOpen(tell, signal)
      const started = await startInSlot(send, signal)
      if (started) return started
    }
  }

  /** What the first in line waits for, the others wait for as well. */
  function tellInLine(tell: Tell, arrived: number): void {
    const known = permits.known()
    const { at, reason } = decide(known, rules, arrived)
    if (at > arrived && at < Number.POSITIVE_INFINITY && !refusalOf(known)) tell(reason, at)
  }

  async function pass<T>(
    send: (answer: Answer) => Promise<T>,
    observer: PageObserver,
    signal: AbortSignal,
  ): Promise<T> {
    const arrived = now()
    const tell = createTell(observer)
    if (turns.activeCount > 0) tellInLine(tell, arrived)
    try {
      const started = await orAborted(
        turns(() => inTurn(send, tell, signal)),
        signal,
      )
      return started.result
    } finally {
      // The clock may have gone back meanwhile.
      observer.onWaited(Math.max(0, now() - arrived))
    }
  }

  return { pass, refusal: () => permits.view().then(refusalOf), rest: permits.rest }
}
