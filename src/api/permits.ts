import pLimit from 'p-limit'
import {
  type Budget,
  type BudgetStore,
  budgetOf,
  budgetText,
  FRESH,
  isHeard,
  onTheirWay,
  type RateRules,
  withPermit,
} from './budget.ts'
import { afterReport, isCounting, type Throttled } from './rate-answer.ts'
import { type Decision, decide } from './rate-decision.ts'
import type { RateHeaders } from './rate-headers.ts'
import { type Answered, currentWindow, MINUTE_MS, type Window } from './rate-window.ts'

export interface PermitsOptions {
  scope: string
  /** Names the process. */
  by: string
  rules: RateRules
  store: BudgetStore
  now: () => number
}

/** The permits that this process takes out of a budget, one for each request. Where nothing limits them, nothing is written. */
export interface Permits {
  /** The budget as it was last read, with all that this process has not written. */
  known(): Budget
  /** The same, read again. */
  view(): Promise<Budget>
  /** For a request that waits: writes, once for each wait, what it waits for; and what is not written. */
  noteWait(decision: Decision): Promise<void>
  /** A permit for a request that leaves in this very moment; null if it may not. */
  take(): Promise<Permit | null>
  /** The request of a permit did not leave after all. */
  unused(): void
  answered(permit: Permit, announced: RateHeaders | null): void
  throttled(announced: RateHeaders, jitterMs: number): void
  /** For a request that has ended: writes what other processes cannot foresee. */
  publish(): Promise<void>
  /** For when no request comes soon: writes all that is not written. */
  rest(): Promise<void>
}

export interface Permit {
  /** The server's window in which the request leaves. */
  window: Window | null
  /** Whether others wait for its answer. */
  isAlone: boolean
}

/** Nothing that is over sooner is worth a transaction. */
const NOTED_MS = 1000

const NOT_TRIED = { known: FRESH, budget: FRESH, isOpen: false, answers: 0, unannounced: 0 }

export function createPermits({ scope, by, rules, store, now }: PermitsOptions): Permits {
  const inTurn = pLimit(1)
  let last = { version: '', budget: FRESH }
  let inFlight = 0
  let answers: (Answered | Throttled)[] = []
  /** When answers came that announced nothing. */
  let unannounced: number[] = []
  /** When a request ended last; that of one that nothing limited is not written. */
  let heardAt = 0
  let isUrgent = false
  let writtenAt = 0
  let notedUntil = 0

  async function read(): Promise<void> {
    const { version, ...stored } = await store.read(scope)
    if (version !== last.version) last = { version, budget: budgetOf(stored.known, stored.closedUntil) }
  }

  function known(): Budget {
    const { budget } = last
    const heard = { ...budget, heardAt: Math.max(budget.heardAt, heardAt) }
    return afterReport(heard, { by, inFlight, answers, unannounced }, rules, now())
  }

  /** Writes all that is not written, and a permit where one is wanted and `isOpen`. Needs `read` before. */
  async function write(wanted: 'permit' | 'report'): Promise<typeof NOT_TRIED> {
    let tried = NOT_TRIED
    const next = () => {
      const [before, at] = [known(), now()]
      const { at: opensAt, reason } = decide(before, rules, at)
      const isOpen = opensAt <= at
      const budget = isOpen && wanted === 'permit' ? withPermit(before, by, rules, at) : before
      const counted = isCounting(before, at) ? unannounced.length : 0
      tried = { known: before, budget, isOpen, answers: answers.length, unannounced: counted }
      isUrgent = false
      const isWait = !isOpen && opensAt < Number.POSITIVE_INFINITY
      const wait = { waitingFor: isWait ? reason : null, waitingUntil: isWait ? opensAt : 0 }
      return { closedUntil: budget.closedUntil, known: budgetText(budget), ...wait }
    }
    let version = await store.compareAndSet(scope, last.version, next)
    while (version === null) {
      await read()
      version = await store.compareAndSet(scope, last.version, next)
    }
    last = { version, budget: tried.budget }
    writtenAt = now()
    answers = answers.slice(tried.answers)
    unannounced = unannounced.slice(tried.unannounced)
    return tried
  }

  async function report(): Promise<void> {
    await read()
    await write('report')
  }

  /** Whether others do not know how many requests of ours are in flight, or what was answered. */
  function hasNews(): boolean {
    const own = last.budget.inFlight.find((one) => one.by === by)?.count ?? 0
    return answers.length > 0 || own !== inFlight
  }

  async function noteWait({ at }: Decision): Promise<void> {
    const isLong = at < Number.POSITIVE_INFINITY && at > now() + NOTED_MS
    // What is not written looks after a while as if this process was killed, and its requests had never been counted.
    const isDue = hasNews() && now() >= writtenAt + NOTED_MS
    if (!isDue && (!isLong || at === notedUntil)) return
    notedUntil = at
    await report()
  }

  async function take(): Promise<Permit | null> {
    await read()
    const before = known()
    const { at, count } = decide(before, rules, now())
    if (at > now()) return null
    const isFree = count === Number.POSITIVE_INFINITY && answers.length === 0
    const taken = isFree ? { known: before, isOpen: true } : await write('permit')
    if (!taken.isOpen) return null
    inFlight++
    return { window: currentWindow(taken.known.window, now()), isAlone: !isHeard(taken.known, now()) }
  }

  function answered({ window, isAlone }: Permit, announced: RateHeaders | null): void {
    const before = known()
    inFlight--
    if (now() >= before.closedUntil) heardAt = now()
    if (announced && !announced.limit) noteUnannounced()
    const counts = announced?.limit || announced?.retryAfterMs || before.throttled > 0 || before.window
    if (counts) answers.push({ at: now(), leftIn: window, announced })
    if (isAlone || (counts && isUnforeseen(before, known(), now()))) isUrgent = true
  }

  /** A 429 may show, within a minute, that they count. */
  function noteUnannounced(): void {
    unannounced.push(now())
    const [oldest = now()] = unannounced
    if (oldest < now() - 2 * MINUTE_MS) unannounced = unannounced.filter((at) => at > now() - MINUTE_MS)
  }

  function throttled(announced: RateHeaders, jitterMs: number): void {
    inFlight--
    answers.push({ at: now(), throttled: announced, jitterMs })
    isUrgent = true
  }

  return {
    known,
    view: () => inTurn(() => read().then(known)),
    noteWait: (decision) => inTurn(() => noteWait(decision)),
    take: () => inTurn(take),
    unused: () => void inFlight--,
    answered,
    throttled,
    publish: () => inTurn(async () => (isUrgent ? report() : undefined)),
    rest: () => inTurn(async () => (hasNews() ? report() : undefined)),
  }
}

/** After a permit all processes expect that an answer counts down, and by no more than what is on its way. */
function isUnforeseen(before: Budget, after: Budget, now: number): boolean {
  if (before.closedUntil !== after.closedUntil || before.window?.endsAt !== after.window?.endsAt) return true
  const least = (before.window?.remaining ?? 0) - onTheirWay(before, now)
  return (after.window?.remaining ?? 0) < Math.max(0, least)
}
