import { asOfNow, type Budget, type RateRules, unanswered, withInFlight } from './budget.ts'
import { LONGEST_MS, type RateHeaders } from './headers.ts'
import {
  type Answered,
  concluded,
  type LearnedLimit,
  MINUTE_MS,
  NOT_MEASURED,
  ROUNDING_MS,
  windowAfter,
  withCounted,
  withLearned,
} from './window.ts'

/** True for a 429, and for a failure with a pause beyond `maxWaitMs`, which the rate limiter must remember. */
export function asksForPause(status: number, { retryAfterMs }: RateHeaders, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
}

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || status >= 500
}

/** A 429, or another response that asks for a pause. */
export interface Throttled {
  /** Epoch milliseconds. */
  at: number
  throttled: RateHeaders
  /** Keeps several processes from sending again at the same instant. */
  jitterMs: number
}

/** What a process knows of its own requests and has not written yet. */
export interface Report {
  by: string
  /** Requests in flight now. */
  inFlight: number
  /** In the order in which they came. */
  answers: readonly (Answered | Throttled)[]
  /** Times of responses of the last minute that announced nothing. */
  unannounced: readonly number[]
}

/** The budget now, with what a process has to report. */
export function afterReport(budget: Budget, report: Report, rules: RateRules, now: number): Budget {
  const { by, inFlight, answers, unannounced } = report
  const at = budget.inFlight.find((one) => one.by === by)?.at ?? now
  // The answered requests were in flight together with those that still are.
  const before = withInFlight(asOfNow(budget, now), { by, count: inFlight + answers.length, at })
  const heard = answers.reduce((after, answer) => afterOne(after, answer, rules), before)
  const valid = answers.length > 0 ? asOfNow(heard, now) : heard
  const current = withInFlight(valid, { by, count: inFlight, at })
  if (!isCounting(current, now)) return current
  return { ...current, learned: withCounted(current.learned, unannounced, current.throttledAt) }
}

/** True during the pause after a 429, when responses that announced nothing are counted. */
export function isCounting({ throttled, closedUntil }: Budget, now: number): boolean {
  return throttled > 0 && now < closedUntil
}

function afterOne(budget: Budget, answer: Answered | Throttled, rules: RateRules): Budget {
  return 'throttled' in answer ? afterThrottle(budget, answer, rules) : afterAnswer(budget, answer)
}

/** The budget after a response other than 429, or after a request that got none. */
export function afterAnswer(budget: Budget, answered: Answered): Budget {
  const { at, announced } = answered
  // Nothing leaves while the budget is closed: this request left before the 429, in a window that is used up.
  if (at < budget.closedUntil) return budget
  const learned = learnedAfter(budget, answered)
  const meant = withLearned(answered, learned, budget.window)
  return {
    ...budget,
    heardAt: Math.max(budget.heardAt, at),
    throttled: announced ? 0 : budget.throttled,
    window: windowAfter(budget.window, meant, unanswered(budget)),
    learned,
    closedUntil: Math.max(budget.closedUntil, usedUpUntil(answered), silentUntil(answered)),
  }
}

function learnedAfter(
  { learned, throttled, closedUntil }: Budget,
  { at, announced }: Answered,
): LearnedLimit {
  if (announced?.limit) return NOT_MEASURED
  return announced && throttled > 0 ? concluded(learned, closedUntil, at) : learned
}

/** Until when a server that failed wants no request; 0 if it does not say. */
function silentUntil({ at, announced }: Answered): number {
  return announced?.retryAfterMs ? at + announced.retryAfterMs : 0
}

/** The end of a used-up window longer than a minute, which counts as a pause; else 0. */
function usedUpUntil({ at, announced }: Answered): number {
  // Some servers write a limit of 0 for no limit.
  const resetMs = announced?.remaining === 0 && announced.limit !== 0 ? announced.resetMs : null
  return resetMs !== null && resetMs > MINUTE_MS ? at + Math.min(resetMs + ROUNDING_MS, LONGEST_MS) : 0
}

/**
 * The budget after a 429. The pause is what the server announced, else the rest of the known window or the
 * fallback, whichever is longer. From the second 429 in a row on, it is a growing pause if that is longer.
 */
export function afterThrottle(budget: Budget, answer: Throttled, rules: RateRules): Budget {
  const { at, throttled: announced, jitterMs } = answer
  // Of several requests in flight together, only the first shows whether the last pause was long enough.
  const isNews = at >= budget.closedUntil
  const { window, throttled } = budget
  const windowMs = window && window.endsAt > at ? window.endsAt - at : 0
  const announcedMs = announced.retryAfterMs ?? announced.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = isNews && throttled > 0 ? Math.min(1000 * 2 ** throttled, rules.fallbackWaitMs) : 0
  const pauseMs = Math.min(Math.max(announcedMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...budget,
    window: null,
    throttledAt: at,
    closedUntil: Math.max(budget.closedUntil, at + pauseMs),
    throttled: throttled + (isNews ? 1 : 0),
  }
}
