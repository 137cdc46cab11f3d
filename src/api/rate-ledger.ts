import pLimit from 'p-limit'
import { isCounting, type Permits, type Report, settle, take } from './rate-account.ts'
import type { Throttled } from './rate-answer.ts'
import { type Budget, budgetOf, budgetText, isHeard, type RateRules } from './rate-budget.ts'
import { type Decision, decide } from './rate-decision.ts'
import type { Announcement } from './rate-headers.ts'
import { type Answered, currentWindow, MINUTE_MS, type Window } from './rate-window.ts'

/** A budget as the memory keeps it, for all processes on the mirror and for the next ones. */
export interface KeptBudget {
  /** Epoch milliseconds; 0 for never. */
  closedUntil: number
  /** As `budgetText` writes it; null before the first time. */
  known: string | null
  /** What the last one who asked has to wait for, and until when; for people. */
  waitingFor: string | null
  waitingUntil: number
}

export interface GateMemory {
  /** Asked before each request. */
  read(scope: string): KeptBudget
  /** Reads and writes in one transaction. `change` is synchronous, and is called again where the transaction is undone. */
  change<T>(scope: string, change: (kept: KeptBudget) => { keep: KeptBudget; result: T }): Promise<T>
}

export interface RateLedgerOptions {
  scope: string
  /** Names the process. */
  by: string
  rules: RateRules
  memory: GateMemory
  now: () => number
}

/** What this process has of a budget: the block it took, and what it did with it. */
export interface RateLedger {
  /** The budget as this process knows it, with all that it has not written yet. */
  view(): Budget
  /** When the next request may go. Takes a block where that is needed. `known` is what `view` says in this very moment. */
  ask(known?: Budget): Promise<Decision>
  /** A request leaves in this very moment, and what it returns goes with its answer; null if it may not. */
  leave(): Left | null
  answered(left: Left, told: Announcement | null): void
  throttled(told: Announcement, jitterMs: number): void
  /** Writes what others have to know at once. To be called when a request has ended. */
  tellOthers(): Promise<void>
  /** Writes all that is not written, and gives back what was not sent. */
  giveBack(): Promise<void>
}

export interface Left {
  window: Window | null
  /** Whether others wait for what becomes of it. */
  isAlone: boolean
}

const NONE: Permits = { from: [], until: 0 }

/** Nothing that is over sooner is worth a transaction. */
const NOTED_MS = 1000

export function createRateLedger({ scope, by, rules, memory, now }: RateLedgerOptions): RateLedger {
  const inTurn = pLimit(1)
  let permits: Permits = NONE
  let exchangedAt = 0
  let inFlight = 0
  let sent: number[] = []
  let answers: (Answered | Throttled)[] = []
  /** When answers came that announced nothing. */
  let unannounced: number[] = []
  let isUrgent = false
  /** Of requests that nothing limited, which are not written. */
  let heardAt = 0
  let notedUntil = 0
  let parsed: { text: string | null; budget: Budget } = { text: null, budget: budgetOf(null, 0) }

  function parse({ known, closedUntil }: KeptBudget): Budget {
    if (known !== parsed.text) parsed = { text: known, budget: budgetOf(known, 0) }
    const { budget } = parsed
    return { ...budget, closedUntil, heardAt: Math.max(budget.heardAt, heardAt) }
  }

  function report(): Report {
    return { by, sent, answers, inFlight, unannounced }
  }

  /** The memory is a file, and asking it dearer than all else here: once for all that happens in one moment. */
  function view(kept = memory.read(scope)): Budget {
    return settle(parse(kept), report(), rules, now())
  }

  /** Nothing limits a request, and there is nothing to tell of the last ones. */
  function isFree({ count }: Decision): boolean {
    return answers.length === 0 && count === Number.POSITIVE_INFINITY
  }

  /** When the next request may leave that this process has taken; Infinity where there is none. */
  function permittedAt(known: Budget): number {
    const isValid = now() < permits.until && known.throttledAt <= exchangedAt
    return (isValid ? permits.from[0] : undefined) ?? Number.POSITIVE_INFINITY
  }

  async function ask(known = view()): Promise<Decision> {
    const decision = decide(known, rules, now())
    const permitted = permittedAt(known)
    if (decision.at <= now() && (isFree(decision) || permitted <= now())) return decision
    // Taken beforehand, and its time has not come.
    const isComing = permitted > now() && permitted < Number.POSITIVE_INFINITY
    if (isComing && decision.at <= permitted) return { ...decision, at: permitted, count: 0 }
    if (decision.at > now() && !isDue() && !isWorthNoting(decision)) return decision
    notedUntil = decision.at
    return exchange(true)
  }

  /** Who waits has time to collect what there is to tell. */
  function isDue(): boolean {
    return hasNews() && now() >= exchangedAt + NOTED_MS
  }

  /** Others may wait for what this process has done with its block. */
  function hasNews(): boolean {
    return permits.from.length > 0 || answers.length > 0
  }

  function isWorthNoting({ at }: Decision): boolean {
    return at < Number.POSITIVE_INFINITY && at > now() + NOTED_MS && at !== notedUntil
  }

  /** Accounts for the block, and takes the next where that is wanted. */
  function exchange(wanted: boolean): Promise<Decision> {
    return inTurn(async () => {
      let told = { sent: 0, answers: 0, unannounced: 0 }
      const { decision, permitted, at, isCounted } = await memory.change(scope, (kept) => {
        told = { sent: sent.length, answers: answers.length, unannounced: unannounced.length }
        // What is given back here must not be used while it is being written.
        permits = NONE
        isUrgent = false
        return exchanged(kept, wanted)
      })
      sent = sent.slice(told.sent)
      answers = answers.slice(told.answers)
      if (isCounted) unannounced = unannounced.slice(told.unannounced)
      permits = permitted
      exchangedAt = at
      return decision
    })
  }

  function exchanged(kept: KeptBudget, wanted: boolean) {
    const at = now()
    const settled = settle(parse(kept), report(), rules, at)
    const decision = decide(settled, rules, at)
    const isTaking = wanted && decision.count < Number.POSITIVE_INFINITY
    const { budget, permits: permitted } = isTaking
      ? take(settled, report(), rules, at)
      : { budget: settled, permits: NONE }
    const isWait = decision.at > at && decision.at < Number.POSITIVE_INFINITY
    const keep: KeptBudget = {
      closedUntil: budget.closedUntil,
      known: budgetText(budget),
      waitingFor: isWait ? decision.reason : null,
      waitingUntil: isWait ? decision.at : 0,
    }
    return { keep, result: { decision, permitted, at, isCounted: isCounting(settled, at) } }
  }

  function leave(): Left | null {
    const known = view()
    const isUnlimited = isFree(decide(known, rules, now()))
    if (known.closedUntil > now() || !(isUnlimited || permittedAt(known) <= now())) return null
    if (!isUnlimited) permits = { ...permits, from: permits.from.slice(1) }
    if (rules.requestsPerMinute !== null) sent.push(now())
    inFlight++
    return { window: currentWindow(known.window, now()), isAlone: !isHeard(known, now()) }
  }

  function answered({ window, isAlone }: Left, told: Announcement | null): void {
    const answer = { at: now(), leftIn: window, told }
    const kept = memory.read(scope)
    const known = view(kept)
    inFlight--
    if (now() >= known.closedUntil) heardAt = now()
    if (told && !told.limit) noteUnannounced()
    const tells = told?.limit || told?.retryAfterMs || known.throttled > 0 || known.window
    if (tells) answers.push(answer)
    if (isAlone || (tells && isForOthers(known, view(kept)))) isUrgent = true
  }

  /** A 429 may tell, within a minute, that they count. */
  function noteUnannounced(): void {
    unannounced.push(now())
    const [oldest = now()] = unannounced
    if (oldest < now() - 2 * MINUTE_MS) unannounced = unannounced.filter((at) => at > now() - MINUTE_MS)
  }

  function throttled(told: Announcement, jitterMs: number): void {
    inFlight--
    permits = NONE
    answers.push({ at: now(), throttled: told, jitterMs })
    isUrgent = true
  }

  async function tellOthers(): Promise<void> {
    if (isUrgent) await exchange(false)
  }

  async function giveBack(): Promise<void> {
    if (hasNews() || sent.length > 0) await exchange(false)
  }

  return { view, ask, leave, answered, throttled, tellOthers, giveBack }
}

/** When a window began is known to nobody else, and would be lost with this process. */
function isForOthers(before: Budget, after: Budget): boolean {
  return before.closedUntil !== after.closedUntil || before.window?.endsAt !== after.window?.endsAt
}
