import { type Budget, type RateRules, unanswered } from './rate-budget.ts'
import { type Announcement, LONGEST_MS } from './rate-headers.ts'
import { concluded, NOT_MEASURED, type Unannounced, withLearned } from './rate-unannounced.ts'
import { type Answered, MINUTE_MS, ROUNDING_MS, windowAfter } from './rate-window.ts'

/** A 429, or another answer that asks for a pause. */
export interface Throttled {
  /** Epoch milliseconds. */
  at: number
  throttled: Announcement
  /** Keeps several processes from coming back in the same instant. */
  jitterMs: number
}

/** The budget after an answer other than 429, or after a request that got none; one of so many that are told together. */
export function afterAnswer(budget: Budget, answered: Answered, together: number): Budget {
  const { at, told } = answered
  // Nothing leaves while the gate is closed: this one left before the 429 and tells of a window that is used up.
  if (at < budget.closedUntil) return budget
  const unannounced = unannouncedAfter(budget, answered)
  const meant = withLearned(answered, unannounced, budget.window)
  return {
    ...budget,
    heardAt: Math.max(budget.heardAt, at),
    throttled: told ? 0 : budget.throttled,
    window: windowAfter(budget.window, meant, unanswered(budget) + together),
    unannounced,
    closedUntil: Math.max(budget.closedUntil, usedUpUntil(answered), silentUntil(answered)),
  }
}

function unannouncedAfter(
  { unannounced, throttled, closedUntil }: Budget,
  { at, told }: Answered,
): Unannounced {
  if (told?.limit) return NOT_MEASURED
  return told && throttled > 0 ? concluded(unannounced, closedUntil, at) : unannounced
}

/** How long a server that failed wants to be left alone, by everybody; 0 where it does not say. */
function silentUntil({ at, told }: Answered): number {
  return told?.retryAfterMs ? at + told.retryAfterMs : 0
}

/** A budget that is used up for longer than a window of ours is a pause, which may be refused; 0 where it is none. */
function usedUpUntil({ at, told }: Answered): number {
  // A limit of 0 is how some servers write that there is none.
  const resetMs = told?.remaining === 0 && told.limit !== 0 ? told.resetMs : null
  return resetMs !== null && resetMs > MINUTE_MS ? at + Math.min(resetMs + ROUNDING_MS, LONGEST_MS) : 0
}

/**
 * The budget after a 429. What the server told counts, else the end of the window as far as it is known, else the
 * fallback; and from the second 429 in a row on a growing pause, since whatever it told was not enough.
 */
export function afterThrottle(budget: Budget, answer: Throttled, rules: RateRules): Budget {
  const { at, throttled: told, jitterMs } = answer
  // Of several that were in flight together, all but the first tell nothing of whether the pause was long enough.
  const isNews = at >= budget.closedUntil
  const { window, throttled } = budget
  const windowMs = window && window.endsAt > at ? window.endsAt - at : 0
  const toldMs = told.retryAfterMs ?? told.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = isNews && throttled > 0 ? Math.min(1000 * 2 ** throttled, rules.fallbackWaitMs) : 0
  const pauseMs = Math.min(Math.max(toldMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...budget,
    window: null,
    throttledAt: at,
    closedUntil: Math.max(budget.closedUntil, at + pauseMs),
    throttled: throttled + (isNews ? 1 : 0),
  }
}
