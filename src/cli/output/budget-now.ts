import type { RateRules } from '../../api/rate/budget.ts'
import { allowedPerMinute } from '../../api/rate/decision.ts'
import { leftIn, MINUTE_MS } from '../../api/rate/window.ts'
import type { Page } from '../../sync/types.ts'

/** What a budget lets us send: how many requests at once, and so many again in each window, the first in `freshMs`. */
export interface BudgetNow {
  open: number
  freshMs: number
  each: number
  windowMs: number
}

/**
 * The budget after an answer; null if nothing is known to limit it. `sent`: our requests of the present minute, which count where
 * the server does not say what is left, and for our own ceiling.
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

/** The same budget some milliseconds later, if nobody sends. */
export function budgetLater(budget: BudgetNow, ms: number): BudgetNow {
  if (ms < budget.freshMs) return { ...budget, freshMs: budget.freshMs - Math.max(ms, 0) }
  return { ...budget, open: budget.each, freshMs: budget.windowMs }
}

/** Milliseconds until so many requests may have left. */
export function msToSend(requests: number, { open, freshMs, each, windowMs }: BudgetNow): number {
  if (requests <= open) return 0
  return freshMs + Math.floor((requests - open - 1) / each) * windowMs
}
