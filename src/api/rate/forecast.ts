import type { Page } from '../../sync/types.ts'
import type { RateRules } from './budget.ts'
import { allowedPerMinute } from './decision.ts'
import { leftIn, MINUTE_MS } from './window.ts'

// How soon requests may leave, from one answer alone: for estimates that people see, not for sending.

/** What a budget lets us send: `open` requests at once, and `each` more in each window, the first of which begins in `freshMs`. */
export interface BudgetNow {
  open: number
  freshMs: number
  each: number
  windowMs: number
}

/**
 * The budget after an answer; null if nothing is known to limit it. `sent`: our requests of the present minute, or more: they count
 * where the server does not say what is left, and for our own ceiling.
 */
export function budgetNow(
  { announcedLimit: limit, announcedLeft: left }: Pick<Page, 'announcedLimit' | 'announcedLeft'>,
  rules: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
  sent: number,
): BudgetNow | null {
  const allowed = allowedPerMinute(limit, rules)
  if (allowed === null) return null
  const [endsAt, requests] = [0, { onTheirWay: 0, unanswered: 0 }]
  const byServer =
    limit === null || left === null
      ? Number.POSITIVE_INFINITY
      : leftIn({ limit, remaining: left.requests, ours: sent, endsAt }, requests, rules.sharePercent)
  const byUs = left !== null && rules.requestsPerMinute === null ? Number.POSITIVE_INFINITY : allowed - sent
  const windowMs = MINUTE_MS / Math.min(allowed, 1)
  const open = Math.max(0, Math.floor(Math.min(byServer, byUs)))
  return { open, freshMs: left?.freshMs ?? windowMs, each: Math.max(allowed, 1), windowMs }
}

/** Milliseconds until this many requests may have left. `ageMs`: how long ago the budget was so, if no request has left since then. */
export function msToSend(requests: number, budget: BudgetNow, ageMs = 0): number {
  const { each, windowMs } = budget
  const isFresh = ageMs >= budget.freshMs
  const open = isFresh ? each : budget.open
  const freshMs = isFresh ? windowMs : budget.freshMs - Math.max(ageMs, 0)
  if (requests <= open) return 0
  return freshMs + Math.floor((requests - open - 1) / each) * windowMs
}
