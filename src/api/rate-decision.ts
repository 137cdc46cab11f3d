import { type Budget, isHeard, onTheirWay, type RateRules, unanswered } from './budget.ts'
import { ceilingOf } from './ceiling.ts'
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
  // The latest first: what is older than the one that fills the window does not matter.
  for (const [at, count] of sent.toReversed()) {
    const goneAt = at + windowMs + SLACK_MS
    open -= goneAt > now ? count : 0
    if (open <= 0) return { at: goneAt, count: 0, reason }
  }
  return limitedTo(open, reason)
}

/** The first request goes alone: of several the server might refuse all, where one shows what is left. */
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

/** The next window of a server that has not announced it yet. */
function renewed(window: Window): Window {
  return { ...window, remaining: window.limit, ours: 0 }
}
