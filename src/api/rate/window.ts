import type { RateHeaders } from './headers.ts'

export const MINUTE_MS = 60_000

/** Servers count in whole seconds, so a window may end up to a second later than announced. */
export const ROUNDING_MS = 1000

/** Differences of clocks, timers and network delays, over one window. */
const SLACK_MS = 250

/** A window of the server's limit, as far as its headers show it. */
export interface Window {
  limit: number
  remaining: number
  /** Requests of ours in it; what was used before its first response counts as ours. */
  ours: number
  endsAt: number
}

/** A response other than 429, or the end of a request that got none. */
export interface Answered {
  /** Epoch milliseconds. */
  at: number
  /** The window that was known and open when the request left: it decides what the response means. */
  leftIn: Window | null
  announced: RateHeaders | null
}

/**
 * How many more requests may leave. What others may still use of their share is not ours. Our unanswered
 * requests, those of a killed process among them, do not count as used by others.
 */
export function leftIn(
  { limit, remaining, ours }: Window,
  requests: { onTheirWay: number; unanswered: number },
  sharePercent: number,
): number {
  const shareOfOthers = limit - Math.max(1, Math.floor((limit * sharePercent) / 100))
  const usedByOthers = Math.max(0, limit - remaining - ours - requests.unanswered)
  return remaining - Math.max(0, shareOfOthers - usedByOthers) - requests.onTheirWay
}

/** The window if it is known and has not ended. */
export function currentWindow(window: Window | null, now: number): Window | null {
  return window && now < window.endsAt ? window : null
}

/** The window that a response announces, or null. */
function announcedWindow({ at, announced }: Answered): Window | null {
  // Some servers write a limit of 0 for no limit; this one has just let a request through.
  if (!announced?.limit || announced.remaining === null) return null
  const { limit, remaining, resetMs } = announced
  const lasts = resetMs === null ? MINUTE_MS + SLACK_MS : Math.min(resetMs, MINUTE_MS) + ROUNDING_MS
  return { limit, remaining, ours: Math.max(1, limit - remaining), endsAt: at + lasts }
}

/**
 * The window after a response. A window begins where `remaining` jumps up from what was known when the request left: an older response
 * may arrive later, so the last one that arrived is no measure. A rise by up to `inFlight` is no jump: some servers miscount concurrent
 * requests. The end is counted from the first response, so it is never too early.
 */
export function windowAfter(kept: Window | null, answered: Answered, inFlight: number): Window | null {
  const { at, leftIn: left } = answered
  const known = currentWindow(kept, at)
  const fresh = announcedWindow(answered)
  const isSame = left !== null && left.endsAt === known?.endsAt
  // Nothing is announced: the request may still have used one of the known window.
  if (!fresh) return known && mayCount(isSame, answered) ? withOneMore(known, known.remaining - 1) : kept
  const isFirst = fresh.remaining >= fresh.limit - 1
  const jumped = left !== null && (isFirst || fresh.remaining > left.remaining + inFlight)
  // No window is open. A request that left in one that has ended shows nothing of the next, unless the counter jumped.
  if (!known) return left === null || jumped ? fresh : kept
  const counted = withOneMore(known, Math.min(known.remaining, fresh.remaining))
  // It left in the window that is still open: a jump then means that a new one has begun.
  if (isSame) return jumped ? fresh : counted
  // It left before the known window was seen to begin, and may have been counted in the one before.
  return left === null || jumped ? counted : known
}

/** True if the server may have counted a request of which it announced nothing. */
function mayCount(isSame: boolean, { leftIn: left, announced }: Answered): boolean {
  return isSame || (left === null && announced !== null)
}

function withOneMore(window: Window, remaining: number): Window {
  return { ...window, ours: window.ours + 1, remaining: Math.max(0, remaining) }
}

/** A limit that no header announces, as far as 429s have shown it. Times are epoch milliseconds. */
export interface LearnedLimit {
  /** Responses in the minute before the last 429. */
  count: number
  /** The time of the first of them. */
  firstAt: number
  /** The same number for the 429 before that; null if it shows nothing. */
  measured: number | null
  /** Requests a minute, once two 429s in a row came after the same number. */
  limit: number | null
  /** When this was concluded, at the first response after a 429; 0: never. */
  learnedAt: number
}

export const NOT_MEASURED: LearnedLimit = { count: 0, firstAt: 0, measured: null, limit: null, learnedAt: 0 }

/** A limit is measured again after this time, at the cost of a 429: it may have changed, or others used a part of it. */
const LEARNED_FOR_MS = 3_600_000

/** Two counts may differ by so much: servers miscount concurrent requests. */
const ALIKE = 0.05

/** A server that ends its pause sooner does not count by the minute. */
const SHORTEST_MS = 55_000

/** Adds responses that announced nothing and came before a 429, or to requests in flight at its time. */
export function withCounted(
  before: LearnedLimit,
  answeredAt: readonly number[],
  throttledAt: number,
): LearnedLimit {
  const counted = answeredAt.filter((at) => at > throttledAt - MINUTE_MS)
  const first = before.count > 0 ? before.firstAt : Number.POSITIVE_INFINITY
  return { ...before, count: before.count + counted.length, firstAt: Math.min(first, ...counted) }
}

/** The limit after the first response that follows a 429. All processes have written their counts by then. */
export function concluded(
  { count, firstAt, measured }: LearnedLimit,
  closedUntil: number,
  at: number,
): LearnedLimit {
  if (count === 0 || closedUntil - firstAt < SHORTEST_MS) return NOT_MEASURED
  const isAlike = measured !== null && Math.abs(count - measured) <= Math.max(1, measured * ALIKE)
  return {
    ...NOT_MEASURED,
    measured: count,
    limit: isAlike ? Math.min(count, measured) : null,
    learnedAt: at,
  }
}

/** The response; if it announces nothing and no window is open, as if it announced the first request of the learned limit. */
export function withLearned(
  answered: Answered,
  { limit, learnedAt }: LearnedLimit,
  window: Window | null,
): Answered {
  const { at, leftIn: left, announced } = answered
  // A request that left in the last window may have been counted there.
  const begins = left === null && !currentWindow(window, at)
  if (!begins || !announced || announced.limit || limit === null || at > learnedAt + LEARNED_FOR_MS)
    return answered
  return { ...answered, announced: { ...announced, limit, remaining: limit - 1 } }
}
