import type { Urgency } from '../../sync/types.ts'
import { LONGEST_MS, type RateHeaders } from './headers.ts'

// The decisions about one budget of requests, as pure functions of its row and the time. limiter.ts reads and writes the row.

const MINUTE_MS = 60_000

/** Servers count in whole seconds, so a pause or a window may end up to a second later than announced. */
export const ROUNDING_MS = 1000

/** So late may the first answer of a window come, at which its end is counted anew. */
const FIRST_ANSWER_MS = 10_000

/** Permits are counted in half seconds, so that the row stays small. */
const HALF_SECOND_MS = 500

/** So long a permit counts: a request may arrive a second later than it was taken, in the same minute as those that follow. */
const COUNTED_MS = MINUTE_MS + 1000

/** What the configuration says. Times in milliseconds. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests; null is none. */
  requestsPerMinute: number | null
  /** Our part of the announced limit. */
  sharePercent: number
  /** The part of the budget that refreshes may use. */
  refreshPercent: number
  /** The pause after a 429 that announces none. */
  fallbackWait: number
}

/** What the processes on a mirror know of one budget; stored with these names. Times are epoch milliseconds. */
export interface Budget {
  /** No request leaves before this time. */
  closedUntil: number
  /** 429s since the last other response. */
  refused: number
  /** Requests a window, as the server announced last. */
  limit: number | null
  /** Null where no request has begun one, or the last one is over. */
  window: Window | null
  /** Permits that our own ceiling counts: the end of a half second, and those taken in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  /** When a refresh left last. */
  refreshedAt: number
}

/** A window of the server's limit, as far as its answers show it. */
interface Window {
  /** When its first permit was taken. */
  begunAt: number
  /** Never too early. */
  endsAt: number
  /** How many requests of ours may still leave. Those of a killed process count as sent. */
  left: number
}

export const FRESH: Budget = {
  closedUntil: 0,
  refused: 0,
  limit: null,
  window: null,
  sent: [],
  refreshedAt: 0,
}

/** The budget of a stored text; `closedUntil` is stored beside it. */
export function budgetOf(text: string | null, closedUntil: number): Budget {
  return { ...FRESH, ...(JSON.parse(text ?? '{}') as Partial<Budget>), closedUntil }
}

/** The part of the announced limit that is ours. */
function ourPart(limit: number, { sharePercent }: Pick<RateRules, 'sharePercent'>): number {
  return Math.max(1, Math.floor((limit * sharePercent) / 100))
}

/** Requests a minute that may be sent over a long time; null where neither the server nor the configuration limits them. */
export function allowedPerMinute(
  limit: number | null,
  rules: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
): number | null {
  const least = Math.min(
    rules.requestsPerMinute ?? Infinity,
    limit === null ? Infinity : ourPart(limit, rules),
  )
  return least === Infinity ? null : least
}

/** The budget without what is over, or lies further in the future than it can: then the clock was set back. */
export function asOfNow(
  { closedUntil, window, sent, ...rest }: Budget,
  { requestsPerMinute }: RateRules,
  now: number,
): Budget {
  const counted = requestsPerMinute === null ? [] : sent
  const isCurrent = window !== null && now < window.endsAt && window.begunAt < now + MINUTE_MS
  const isClosed = closedUntil > now && closedUntil <= now + LONGEST_MS + ROUNDING_MS
  return {
    ...rest,
    closedUntil: isClosed ? closedUntil : 0,
    window: isCurrent ? window : null,
    sent: counted
      .map(([end, count]) => [Math.min(end, now + HALF_SECOND_MS), count] as const)
      .filter(([end]) => end + COUNTED_MS > now),
  }
}

/** What a request has to wait for. */
export interface Wait {
  until: number
  reason: string
}

/**
 * What the next request has to wait for longest; null if it may leave. A walk that used a whole window at once would keep refreshes waiting
 * for the next one: in a minute after a refresh, others get the refreshes' part of the window evenly over the rest of it.
 * @param budget A result of `asOfNow`.
 */
export function waitFor(budget: Budget, rules: RateRules, now: number, urgency: Urgency): Wait | null {
  const { closedUntil, limit, window, sent, refreshedAt } = budget
  const { requestsPerMinute, refreshPercent } = rules
  const isShared = urgency !== 'refresh' && refreshedAt <= now && now < refreshedAt + MINUTE_MS
  const roomAt = (left: number, most: number, endsAt: number) => {
    if (left <= 0) return endsAt
    return isShared ? Math.ceil(endsAt - (left / ((most * refreshPercent) / 100)) * MINUTE_MS) : 0
  }
  const waits: Wait[] = [{ until: closedUntil, reason: 'the server takes no more requests for now' }]
  if (window !== null && limit !== null) {
    const until = roomAt(window.left, ourPart(limit, rules), window.endsAt)
    waits.push({ until, reason: `the server's limit of ${limit} requests a minute` })
  }
  if (requestsPerMinute !== null) {
    const { left, endsAt } = leftOf(sent, requestsPerMinute)
    const reason = `our own limit of ${requestsPerMinute} requests a minute`
    waits.push({ until: roomAt(left, requestsPerMinute, endsAt), reason })
  }
  const longest = waits.reduce((most, wait) => (wait.until > most.until ? wait : most))
  return longest.until > now ? longest : null
}

/** What our own ceiling leaves, and when the permit that fills it, else the oldest one, does not count any more. */
function leftOf(sent: Budget['sent'], most: number): { left: number; endsAt: number } {
  let left = most
  let endsAt = 0
  for (const [end, count] of sent.toReversed()) {
    left -= count
    endsAt = end + COUNTED_MS
    if (left <= 0) break
  }
  return { left, endsAt }
}

/** The budget with one more permit. */
export function withPermit(budget: Budget, rules: RateRules, now: number, urgency: Urgency): Budget {
  const { limit, window, sent } = budget
  const begun = window ?? {
    begunAt: now,
    endsAt: now + MINUTE_MS + FIRST_ANSWER_MS,
    left: ourPart(limit ?? 0, rules),
  }
  const next = {
    ...budget,
    window: limit === null ? null : { ...begun, left: begun.left - 1 },
    sent: withSent(sent, now),
    refreshedAt: urgency === 'refresh' ? now : budget.refreshedAt,
  }
  // Here too, since the answer to the last request of a window may be lost.
  return withPause(next, now)
}

/** What is used up for longer than a minute is a pause, to which `maxWait` applies, and which `resume` ends. */
function withPause(budget: Budget, now: number): Budget {
  const { window, closedUntil } = budget
  if (window === null || window.left > 0 || window.endsAt <= now + MINUTE_MS + FIRST_ANSWER_MS) return budget
  return { ...budget, window: null, closedUntil: Math.max(closedUntil, window.endsAt) }
}

function withSent(sent: Budget['sent'], at: number): Budget['sent'] {
  const end = Math.ceil(at / HALF_SECOND_MS) * HALF_SECOND_MS
  const [lastEnd, count] = sent.at(-1) ?? [0, 0]
  // The last one is later if the clock of another process is ahead, or ours was set back.
  return lastEnd >= end ? [...sent.slice(0, -1), [lastEnd, count + 1]] : [...sent, [end, 1]]
}

/** An answer, when it came, and when its request had left. */
export interface Answer {
  leftAt: number
  at: number
  announced: RateHeaders
}

/** The budget after an answer that is no 429. A server that fails may ask for a pause. */
export function afterAnswer(budget: Budget, answer: Answer, rules: RateRules): Budget {
  const { at, announced } = answer
  const limit = announced.limit ?? budget.limit
  const pauseMs = announced.retryAfterMs ?? 0
  const closedUntil = pauseMs > 0 ? Math.max(budget.closedUntil, at + pauseMs) : budget.closedUntil
  return withPause(
    { ...budget, refused: 0, limit, closedUntil, window: windowAfter(budget, answer, rules) },
    at,
  )
}

function windowAfter(
  { window: last, limit: lastLimit }: Budget,
  { leftAt, at, announced: { limit, remaining, resetMs } }: Answer,
  rules: RateRules,
): Window | null {
  if (limit === null || remaining === null) return last
  const endsAt = at + (resetMs ?? MINUTE_MS) + ROUNDING_MS
  // The first that is heard of a limit: what was used of it before counts as ours.
  if (last === null && lastLimit === null)
    return { begunAt: leftAt, endsAt, left: ourPart(limit, rules) - Math.max(1, limit - remaining) }
  // An answer to a request of another window shows nothing of this one.
  if (last === null || leftAt < last.begunAt) return last
  return {
    ...last,
    left: Math.min(last.left, remaining),
    endsAt: resetMs === null ? Math.min(last.endsAt, endsAt) : endsAt,
  }
}

/**
 * The budget after a 429. The pause is what the server announced, else the rest of the known window or the fallback, whichever is
 * longer. One that is refused again and again waits longer each time.
 */
export function afterThrottle(budget: Budget, { at, announced }: Answer, rules: RateRules): Budget {
  const { window, refused, closedUntil, limit } = budget
  // Of several requests in flight together, only the first shows whether the last pause was long enough.
  const isNews = at >= closedUntil
  const untold = Math.max((window?.endsAt ?? 0) - at, rules.fallbackWait)
  const told = announced.retryAfterMs ?? announced.resetMs ?? untold
  const grown = isNews ? Math.min(1000 * (2 ** refused - 1), rules.fallbackWait) : 0
  return {
    ...budget,
    refused: refused + (isNews ? 1 : 0),
    limit: announced.limit ?? limit,
    window: null,
    closedUntil: Math.max(closedUntil, at + Math.max(told, grown) + ROUNDING_MS),
  }
}
