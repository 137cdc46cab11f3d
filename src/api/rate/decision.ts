import type { Page } from '../../sync/types.ts'
import { type Budget, isHeard, onTheirWay, type RateRules, unanswered } from './budget.ts'
import { currentWindow, leftIn, MINUTE_MS, type Window } from './window.ts'

/** When the next request may leave, how many may then, and what they wait for. */
export interface Decision {
  /** Infinity: only after a response to a request in flight. */
  at: number
  /** 0 until then. Infinity if nothing limits them. */
  count: number
  reason: string
}

/**
 * A request may arrive this much later than its permit was taken, while its process starts or a connection opens. Without this margin,
 * those that follow a late one could arrive in the same minute. It costs less than 2 % of a minute.
 */
const ARRIVAL_MS = 1000

const AFTER_ANSWER = Number.POSITIVE_INFINITY

const FREE: Decision = { at: 0, count: Number.POSITIVE_INFINITY, reason: 'nothing' }

/** The strictest of all limits. `budget` is a result of `asOfNow`. */
export function decide(budget: Budget, rules: RateRules, now: number): Decision {
  const limits = [
    ceilingBy(budget, rules, now),
    closedBy(budget, now),
    silenceBy(budget, now),
    windowBy(budget, rules, now),
  ]
  return limits.reduce((most, limit) => (isStricter(limit, most) ? limit : most), FREE)
}

function isStricter(limit: Decision, than: Decision): boolean {
  return limit.at > than.at || (limit.at === than.at && limit.count < than.count)
}

function limitedTo(count: number, reason: string): Decision {
  return { at: 0, count, reason }
}

function closedBy({ closedUntil }: Budget, now: number): Decision {
  return closedUntil <= now ? FREE : { at: closedUntil, count: 0, reason: 'the server asked for a pause' }
}

function ceilingBy({ sent }: Budget, { requestsPerMinute: most }: RateRules, now: number): Decision {
  if (most === null) return FREE
  const { requests, windowMs } = ceilingOf(most)
  const reason = `our own limit of ${most} requests a minute`
  let open = requests
  // From the latest back to the one that fills the window.
  for (const [at, count] of sent.toReversed()) {
    const goneAt = at + windowMs + ARRIVAL_MS
    open -= goneAt > now ? count : 0
    if (open <= 0) return { at: goneAt, count: 0, reason }
  }
  return limitedTo(open, reason)
}

/** Our own ceiling in whole requests: no `windowMs` hold more than `requests`. */
export interface Ceiling {
  requests: number
  windowMs: number
}

/**
 * From 1 a minute on, 60 seconds hold the whole part of the rate, so 1.5 allows 1. Below, one request leaves
 * in 1/rate minutes: 0.5 is one in two minutes.
 */
export function ceilingOf(requestsPerMinute: number): Ceiling {
  return requestsPerMinute < 1
    ? { requests: 1, windowMs: Math.ceil(MINUTE_MS / requestsPerMinute) }
    : { requests: Math.floor(requestsPerMinute), windowMs: MINUTE_MS }
}

/** Requests a minute that the ceiling allows over a long time. */
export function averageOf(requestsPerMinute: number): number {
  return requestsPerMinute < 1 ? requestsPerMinute : Math.floor(requestsPerMinute)
}

/** The server's limit, announced or learned; null if nothing is known of one. */
export function knownLimit({ window, learned }: Pick<Budget, 'window' | 'learned'>): number | null {
  return window?.limit ?? learned.limit
}

/** Requests a minute that may be sent over a long time; null where neither the server nor the configuration limits them. */
export function allowedPerMinute(
  limit: number | null,
  { requestsPerMinute, sharePercent }: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
): number | null {
  const share = limit === null ? null : Math.max(1, Math.floor((limit * sharePercent) / 100))
  const ceiling = requestsPerMinute === null ? null : averageOf(requestsPerMinute)
  return share === null || ceiling === null ? (ceiling ?? share) : Math.min(ceiling, share)
}

/** The first request leaves alone: its response shows what is left, while several might all be refused. */
function silenceBy(budget: Budget, now: number): Decision {
  if (isHeard(budget, now)) return FREE
  const reason = 'a first answer, which shows what the rate limit has left'
  return onTheirWay(budget, now) === 0 ? limitedTo(1, reason) : { at: AFTER_ANSWER, count: 0, reason }
}

function windowBy(budget: Budget, { sharePercent }: RateRules, now: number): Decision {
  const { window } = budget
  if (!window) return FREE
  const reason = `the server's limit of ${window.limit} requests a minute`
  const current = currentWindow(window, now)
  const requests = { onTheirWay: onTheirWay(budget, now), unanswered: unanswered(budget) }
  const left = leftIn(current ?? renewed(window), requests, sharePercent)
  if (left > 0) return limitedTo(left, reason)
  return { at: current?.endsAt ?? AFTER_ANSWER, count: 0, reason }
}

/** The server's next window, which no response has announced yet. */
function renewed(window: Window): Window {
  return { ...window, remaining: window.limit, ours: 0 }
}

// How soon requests may leave, from one answer alone: for estimates that people see, not for sending.

/** What a budget lets us send: `open` requests at once, and `each` more in each window, the first of which begins in `freshMs`. */
export interface BudgetNow {
  open: number
  freshMs: number
  each: number
  windowMs: number
}

/**
 * The budget after an answer; null if nothing is known to limit it. `sent`: our requests of the last minute: they count where the server
 * does not say what is left, and for our own ceiling.
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
