import type { RateRules } from '../../api/rate/budget.ts'
import { allowedPerMinute } from '../../api/rate/decision.ts'
import { leftIn, MINUTE_MS } from '../../api/rate/window.ts'
import type { Page } from '../../sync/types.ts'
import { counted, grouped, inWords } from '../../text.ts'

/** What limits how fast pages can come. */
export interface Pace {
  /** Requests a minute that are ours; null if nothing is known to limit them. */
  allowed: number | null
  /** What may leave now, and when more; null if nothing is known to limit it. */
  budget: BudgetNow | null
  /** What an answer takes, without waits. */
  msPerPage: number
  /** Answers that this is known from. */
  answers: number
  /** Pages that the other lists with the same budget still need; null for one that has no answer yet. */
  others: readonly (number | null)[]
}

/** A few answers say how fast a server is; a single one may have been slow, or its page may have waited for somebody's lock. */
export const ENOUGH_ANSWERS = 3

/**
 * `4,000 pages, about 67 minutes at 60 a minute`, and the same in milliseconds. What a fresh minute still allows leaves at once;
 * where that suffices, or a job's pages, asked for one after another, take longer than the limit, the server's speed decides.
 * Null as long as that is not known.
 */
export function estimate(
  pages: number,
  { budget, allowed, others, answers, msPerPage }: Pace,
): { ms: number; by: 'budget' | 'speed'; text: string } | null {
  const bySpeed = answers < ENOUGH_ANSWERS ? null : pages * msPerPage
  const byBudget = budget === null ? 0 : msToSend(requestsUntilEnd(pages, others), budget)
  if (allowed !== null && byBudget > (bySpeed ?? 0)) {
    const shared = others.length === 0 ? '' : `, shared by ${others.length + 1} lists`
    const text = `${counted(pages, 'page')}, about ${inWords(byBudget)} at ${grouped(allowed)} a minute${shared}`
    return { ms: byBudget, by: 'budget', text }
  }
  if (bySpeed === null) return null
  const text = `${counted(pages, 'page')}, about ${inWords(bySpeed)} at the speed of the first ${answers}`
  return { ms: bySpeed, by: 'speed', text }
}

/**
 * The requests that a budget sends until a list has its pages. Its lists take turns, so a longer one sends no more than this one
 * meanwhile. One without an answer is taken to be as long.
 */
export function requestsUntilEnd(pages: number, others: readonly (number | null)[]): number {
  return others.reduce((sum: number, other) => sum + Math.min(other ?? pages, pages), pages)
}

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

/** The same budget some milliseconds later, if no request leaves meanwhile. */
export function budgetLater(budget: BudgetNow, ms: number): BudgetNow {
  if (ms < budget.freshMs) return { ...budget, freshMs: budget.freshMs - Math.max(ms, 0) }
  return { ...budget, open: budget.each, freshMs: budget.windowMs }
}

/** Milliseconds until so many requests may have left. */
export function msToSend(requests: number, { open, freshMs, each, windowMs }: BudgetNow): number {
  if (requests <= open) return 0
  return freshMs + Math.floor((requests - open - 1) / each) * windowMs
}
