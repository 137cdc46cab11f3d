import { isDeepStrictEqual } from 'node:util'
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
  rules: RateRules & { maxWait: number }
  store: BudgetStore
  /** Requests in flight at the same time, shared by all rate limiters. */
  slots: LimitFunction
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export type RateLimiter = ReturnType<typeof createRateLimiter>

export interface RequestOptions {
  urgency: Urgency
  observe: Observe<RequestEvent>
  signal: AbortSignal
}

/** What an answer says of the rate limit. */
export interface Heard {
  announced: RateHeaders
  /** It asks for a pause, as a 429 does. */
  isThrottled: boolean
}

/** A request that waits for its permit, which comes with what frees its slot again. */
interface Waiting extends RequestOptions {
  /** Epoch milliseconds. */
  since: number
  /** Until when it was told to wait. */
  toldUntil: number
  permit: PromiseWithResolvers<() => void>
}

/** How often a waiting request reads the budget again, which another process may have changed; and the shortest wait that is told. */
const READ_AGAIN_MS = 1000

const ORDER: Readonly<Record<Urgency, number>> = { refresh: 0, walk: 1, older: 2 }

/** A server that answers with nothing but 429s for so long, whatever pauses it asks for, will not do otherwise soon. Milliseconds. */
const TAKES_NONE_MS = 3_600_000

/** After so long others go like refreshes, which may have the whole budget as their share: else a walk would never end beside them. */
const BEHIND_REFRESHES_MS = 60_000

/**
 * Spends one budget of requests. All requests that share it pass here: refreshes first, older pages last, and otherwise in the
 * order in which they came. Each takes its permit by one compare-and-set on the budget's row.
 */
export function createRateLimiter({ budgetKey, rules, store, slots, now, sleep }: RateLimiterOptions) {
  const line = new Set<Waiting>()
  /** One use of the row after another. */
  const inTurn = pLimit(1)
  let known = { version: '', budget: FRESH }
  /** Requests leave one by one until an answer shows how many may: at the beginning, and after a 429. */
  let isAlone = true
  let inFlight = 0
  let isServing = false
  /** Aborted to make whoever waits look again. */
  let woken = new AbortController()
  let notedUntil = 0

  const patience = Math.max(rules.maxWait, TAKES_NONE_MS)
  /** When the first and the last of the 429s came that this process met one after another; null: none. */
  let refused: { since: number; at: number } | null = null

  const budget = () => asOfNow(known.budget, rules, now())

  async function read(): Promise<void> {
    const { version, ...stored } = await store.read(budgetKey)
    if (version !== known.version) known = { version, budget: budgetOf(stored.known, stored.closedUntil) }
  }

  /** Writes what `change` makes of the budget, and again where another process was faster. `wait`: for `status`. */
  function write(change: (budget: Budget) => Budget, wait: Wait | null = null): Promise<void> {
    return inTurn(async () => {
      for (;;) {
        let written = FRESH
        const version = await store.compareAndSet(budgetKey, known.version, () => {
          written = change(budget())
          const { closedUntil, ...others } = written
          return {
            closedUntil,
            known: JSON.stringify(others),
            waitingFor: wait?.reason ?? null,
            waitingUntil: wait?.until ?? 0,
          }
        })
        if (version !== null) {
          known = { version, budget: written }
          return
        }
        await read()
      }
    })
  }

  const urgencyOf = ({ urgency, since }: Waiting): Urgency =>
    now() - since < BEHIND_REFRESHES_MS ? urgency : 'refresh'

  /** Takes a permit for a request that leaves at once. */
  async function take(one: Waiting): Promise<boolean> {
    let isTaken = false
    await write((before) => {
      // Time passed while the row's lock was waited for.
      isTaken = waitFor(before, rules, now(), urgencyOf(one)) === null
      return isTaken ? withPermit(before, rules, now(), one.urgency) : before
    })
    return isTaken
  }

  function refusalOf({ closedUntil }: Budget): JobError | null {
    const wait = closedUntil - now()
    const took = refused === null ? 0 : refused.at - refused.since
    const isLong = wait > rules.maxWait + ROUNDING_MS
    const isEndless = wait > 0 && took > patience
    if (!isLong && !isEndless) return null
    const why = isLong
      ? `takes no more requests for now, and the wait of ${inWords(wait)} is longer than rateLimit.maxWait (${inWords(rules.maxWait)})`
      : `has taken no request for ${inWords(took)}`
    return new JobError(
      'RATE_LIMITED',
      `the server ${why}: nothing is sent before ${new Date(closedUntil).toISOString()}, and the next run ` +
        `after that continues from here (admin-mirror resume forgets the wait)`,
      String(closedUntil),
    )
  }

  const first = () =>
    [...line].toSorted((one, other) => ORDER[urgencyOf(one)] - ORDER[urgencyOf(other)]).at(0)

  const mustBeAlone = () => isAlone && inFlight > 0

  /** Lets requests leave one after another, as long as any wait. */
  async function serve(): Promise<void> {
    isServing = true
    for (let one = first(); one; one = first()) {
      try {
        if (await isOpenFor(one)) await letFirstLeave()
      } catch (error) {
        line.delete(one)
        one.permit.reject(error)
      }
    }
    isServing = false
  }

  /** False once it has waited for a while, or something happened: then the first in line may be another one. */
  async function isOpenFor(one: Waiting): Promise<boolean> {
    const urgency = urgencyOf(one)
    // Before the look, so that what happens after it ends the sleep.
    woken = new AbortController()
    // A budget that is open needs no look at the row: a permit cannot be taken from an old one.
    if (waitFor(budget(), rules, now(), urgency)) await inTurn(read)
    const refusal = refusalOf(budget())
    if (refusal) throw refusal
    const wait = waitFor(budget(), rules, now(), urgency)
    if (!wait && !mustBeAlone()) return true
    const until = wait?.until ?? now() + READ_AGAIN_MS
    if (wait && until >= now() + READ_AGAIN_MS) {
      tell(wait)
      if (until !== notedUntil) await write((before) => before, wait)
      notedUntil = until
    }
    const ms = Math.max(0, Math.min(until - now(), READ_AGAIN_MS))
    await sleep(ms, woken.signal).catch((error: unknown) => {
      if (!woken.signal.aborted) throw error
    })
    return false
  }

  /** Tells those who wait, but what each was told before. */
  function tell({ until, reason }: Wait): void {
    for (const one of line) {
      if (one.toldUntil !== until) one.observe({ kind: 'wait', reason, until })
      one.toldUntil = until
    }
  }

  /** Waits for a slot, then takes the permit: other budgets may hold all slots for a while. */
  async function letFirstLeave(): Promise<void> {
    const release = await freeSlot(slots)
    const one = mustBeAlone() ? undefined : first()
    const isTaken =
      one !== undefined &&
      (await take(one).catch((error: unknown) => {
        release()
        throw error
      }))
    // The signal may be aborted while the permit is written. It is counted all the same.
    if (one && isTaken && line.delete(one)) {
      inFlight++
      one.permit.resolve(release)
    } else release()
  }

  /** Sends a request when the budget allows it, and notes what its answer says. */
  async function send<T extends Heard>(request: () => Promise<T>, options: RequestOptions): Promise<T> {
    const { observe, signal } = options
    const one: Waiting = { ...options, since: now(), toldUntil: 0, permit: Promise.withResolvers() }
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
    const release = await one.permit.promise.finally(() => {
      signal.removeEventListener('abort', stop)
      // The clock may have been set back meanwhile.
      observe({ kind: 'waited', ms: Math.max(0, now() - one.since) })
    })
    return sendNow(request).finally(release)
  }

  async function sendNow<T extends Heard>(request: () => Promise<T>): Promise<T> {
    const leftAt = now()
    let isThrottled = false
    try {
      const heard = await request()
      isThrottled = heard.isThrottled
      const at = now()
      const since = refused && at - refused.at <= patience ? refused.since : at
      refused = isThrottled ? { since, at } : null
      const answer = { leftAt, at, announced: heard.announced }
      const change = (before: Budget) => (isThrottled ? afterThrottle : afterAnswer)(before, answer, rules)
      const before = budget()
      // Most answers show nothing new. A pause is always written: `resume` may have lifted the one that is known here.
      const isPause = isThrottled || heard.announced.retryAfterMs !== null
      if (isPause || !isDeepStrictEqual(change(before), before)) await write(change)
      return heard
    } finally {
      inFlight--
      isAlone = isThrottled
      // Without a reason, Node makes an error with a stack.
      woken.abort('a response came')
    }
  }

  return {
    send,
    /** The error of a job that must not begin, since the server wants a pause beyond `maxWait`, or one after another; or null. */
    refusal: () => inTurn(read).then(() => refusalOf(budget())),
    /** Requests a minute that may be sent, as far as it is known. */
    limit: () => allowedPerMinute(known.budget.limit, rules),
  }
}

/** Resolves once a slot is free, with what frees it again. */
function freeSlot(slots: LimitFunction): Promise<() => void> {
  return new Promise((resolve) => void slots(() => new Promise<void>((free) => resolve(free))))
}
