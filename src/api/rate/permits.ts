import pLimit from 'p-limit'
import type { BudgetStore } from '../../sync/types.ts'
import {
  afterReport,
  type Budget,
  budgetOf,
  budgetText,
  FRESH,
  isCounting,
  isHeard,
  onTheirWay,
  type RateRules,
  type Throttled,
  withPermit,
} from './budget.ts'
import { type Decision, decide } from './decision.ts'
import type { RateHeaders } from './headers.ts'
import { type Answered, currentWindow, MINUTE_MS, type Window } from './window.ts'

export interface PermitsOptions {
  budgetKey: string
  /** Identifies the process among those that share the budget. */
  by: string
  rules: RateRules
  store: BudgetStore
  now: () => number
}

export interface Permit {
  /** The server's window in which the request leaves. */
  window: Window | null
  /** True if others wait for its response. */
  isAlone: boolean
}

/** A shorter wait is not worth a transaction. */
const NOTED_MS = 1000

export type Permits = ReturnType<typeof createPermits>

const NOT_TRIED = { known: FRESH, budget: FRESH, isOpen: false, answers: 0, unannounced: 0 }

/** Takes permits from a budget for this process, one per request. Writes nothing where nothing limits them. */
export function createPermits({ budgetKey, by, rules, store, now }: PermitsOptions) {
  const inTurn = pLimit(1)
  let last = { version: '', budget: FRESH }
  let inFlight = 0
  let answers: (Answered | Throttled)[] = []
  /** Times of responses that announced nothing. */
  let unannounced: number[] = []
  /** The end of our last request; not written if nothing limited it. */
  let heardAt = 0
  let isUrgent = false
  let writtenAt = 0
  let notedUntil = 0

  async function read(): Promise<void> {
    const { version, ...stored } = await store.read(budgetKey)
    if (version !== last.version) last = { version, budget: budgetOf(stored.known, stored.closedUntil) }
  }

  /** The budget as last read, with what this process has not written yet. */
  function known(): Budget {
    const { budget } = last
    const heard = { ...budget, heardAt: Math.max(budget.heardAt, heardAt) }
    return afterReport(heard, { by, inFlight, answers, unannounced }, rules, now())
  }

  /** Writes what is not written yet, and takes a permit if one is wanted and `isOpen`. Needs `read` before. */
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
    let version = await store.compareAndSet(budgetKey, last.version, next)
    while (version === null) {
      await read()
      // The last permit is gone, and the rest can wait.
      if (wanted === 'permit' && decide(known(), rules, now()).at > now()) return NOT_TRIED
      version = await store.compareAndSet(budgetKey, last.version, next)
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

  /** Whether other processes do not yet know our responses, or how many of our requests are in flight. */
  function hasNews(): boolean {
    const own = last.budget.inFlight.find((one) => one.by === by)?.count ?? 0
    return answers.length > 0 || own !== inFlight
  }

  /** Call it while a request waits. Writes, once per wait, the reason, and what is not written yet. */
  async function noteWait({ at }: Decision): Promise<void> {
    const isLong = at < Number.POSITIVE_INFINITY && at > now() + NOTED_MS
    // Other processes assume that one that has not written for a while was killed, and stop counting its requests.
    const isDue = hasNews() && now() >= writtenAt + NOTED_MS
    if (!isDue && (!isLong || at === notedUntil)) return
    notedUntil = at
    await report()
  }

  /** Whether a permit is free, as far as is known, and has to be written. */
  function isPermitWritten(): boolean {
    if (last.version === '') return false
    const { at, count } = decide(known(), rules, now())
    return at <= now() && (count < Number.POSITIVE_INFINITY || answers.length > 0)
  }

  /** A permit for a request that leaves at once; null if none may. */
  async function take(): Promise<Permit | null> {
    // A write fails if another process was faster. A permit that is not written needs a read.
    if (!isPermitWritten()) await read()
    const before = known()
    if (decide(before, rules, now()).at > now()) return null
    const taken = isPermitWritten() ? await write('permit') : { known: before, isOpen: true }
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
    if (isAlone || (counts && isUnpredicted(before, known(), now()))) isUrgent = true
  }

  /** They count if a 429 follows within a minute. */
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
    /** When the next request may leave, by this budget. */
    decision: (budget: Budget): Decision => decide(budget, rules, now()),
    /** The same as `known`, read again. */
    view: () => inTurn(() => read().then(known)),
    noteWait: (wait: Decision) => inTurn(() => noteWait(wait)),
    take: () => inTurn(take),
    /** Gives back a permit whose request did not leave. */
    unused: () => void inFlight--,
    answered,
    throttled,
    /** Call it when a request has ended: writes what other processes cannot predict. */
    publish: () => inTurn(async () => (isUrgent ? report() : undefined)),
    /** Call it when no request comes soon: writes all that is not written yet. */
    flush: () => inTurn(async () => (hasNews() ? report() : undefined)),
  }
}

/** Whether other processes cannot predict this: they expect `remaining` to fall by no more than the requests on their way. */
function isUnpredicted(before: Budget, after: Budget, now: number): boolean {
  if (before.closedUntil !== after.closedUntil || before.window?.endsAt !== after.window?.endsAt) return true
  const least = (before.window?.remaining ?? 0) - onTheirWay(before, now)
  return (after.window?.remaining ?? 0) < Math.max(0, least)
}
