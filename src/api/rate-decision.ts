import { type Ceiling, ceilingOf } from './ceiling.ts'
import { type Budget, isHeard, onTheirWay, type RateRules, unaccounted, unanswered } from './rate-budget.ts'
import { currentWindow, leftIn, SLACK_MS, type Window } from './rate-window.ts'

/** When the next request may go, how many may then, and what holds them back until then. */
export interface Decision {
  /** Infinity stands for no time: an answer to what is on its way has to come first. */
  at: number
  /** 0 until then. Infinity where nothing limits them. */
  count: number
  reason: string
}

/** Not before an answer to what is on its way. */
const AFTER_ANSWER = Number.POSITIVE_INFINITY

const FREE: Decision = { at: 0, count: Number.POSITIVE_INFINITY, reason: 'nothing' }

/** The strictest of all that limits a budget. `budget` is what `asOfNow` says of it. */
export function decide(budget: Budget, rules: RateRules, now: number): Decision {
  return strictest([ceilingBy(budget, rules, now), decideByServer(budget, rules, now)])
}

/** The same without our own ceiling. */
export function decideByServer(budget: Budget, rules: RateRules, now: number): Decision {
  return strictest([closedBy(budget, now), silenceBy(budget, now), windowBy(budget, rules, now)])
}

function strictest(limits: readonly Decision[]): Decision {
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

function ceilingBy(budget: Budget, { requestsPerMinute: most }: RateRules, now: number): Decision {
  if (most === null) return FREE
  const reason = `our own limit of ${most} requests a minute`
  const ceiling = ceilingOf(most)
  const open = ceiling.requests - used(budget, ceiling, now)
  if (open > 0) return limitedTo(open, reason)
  return { at: openings(budget, ceiling, now)[0] ?? AFTER_ANSWER, count: 0, reason }
}

/** Requests that count at the ceiling still, or may. */
function used(budget: Budget, ceiling: Ceiling, now: number): number {
  return unaccounted(budget) + counting(budget, ceiling, now).reduce((sum, [, count]) => sum + count, 0)
}

function counting({ sent }: Budget, ceiling: Ceiling, now: number): Budget['sent'] {
  return sent.filter(([at]) => now < goneAt(at, ceiling))
}

/** When the next requests may leave by our own ceiling, as far as that can be told: as many as it allows in its window. */
export function openings(budget: Budget, ceiling: Ceiling, now: number): number[] {
  const open = ceiling.requests - used(budget, ceiling, now)
  const later = counting(budget, ceiling, now).flatMap(([at, count]) =>
    Array.from({ length: count }, () => goneAt(at, ceiling)),
  )
  // Those that were taken and did not leave yet have the first places.
  return open >= 0 ? [...Array.from({ length: open }, () => now), ...later] : later.slice(-open)
}

function goneAt(sentAt: number, { windowMs }: Ceiling): number {
  return sentAt + windowMs + SLACK_MS
}

/** The first request goes alone: of several the server might refuse all, where one tells what is left. */
function silenceBy(budget: Budget, now: number): Decision {
  if (isHeard(budget, now)) return FREE
  const reason = 'the first answer of the server'
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

/** The next window of a server that has not spoken of it yet. */
function renewed(window: Window): Window {
  return { ...window, remaining: window.limit, ours: 0 }
}
