import { LONGEST_MS, type RateHeaders } from './headers.ts'

const MINUTE_MS = 60_000

/** Servers count in whole seconds, so a window or a pause may end up to a second later than announced. */
export const ROUNDING_MS = 1000

/** Differences of clocks, timers and network delays, over one window. */
const SLACK_MS = 250

const HALF_SECOND_MS = 500

/**
 * A request may arrive this much later than its permit was taken, while its process starts or a connection opens. Without this margin,
 * those that follow a late one could arrive in the same minute. It costs less than 2 % of a minute.
 */
const ARRIVAL_MS = 1000

/** What the configuration says. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests; 0.5 is one in two minutes; null is none. */
  requestsPerMinute: number | null
  /** Our part of the announced limit. */
  sharePercent: number
  /** The pause after a 429 that announces none. */
  fallbackWaitMs: number
}

/** What the processes on a mirror know of one budget; stored with these names. Times are epoch milliseconds. */
export interface Budget {
  /** No request leaves before this time. */
  closedUntil: number
  /** 429s since the last other response. */
  throttled: number
  /** Permits that our own ceiling counts: the end of a half second, and those taken in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  window: Window | null
}

/** A window of the server's limit, as far as its answers show it. */
export interface Window {
  /** When its first permit was taken or its first answer came: tells windows apart. 0: none was, yet. */
  begunAt: number
  /** Counted from its first answer, so it is never too early. */
  endsAt: number
  isHeard: boolean
  limit: number
  /** The least that an answer said is left. */
  remaining: number
  /** Permits taken in it; what was used before its first answer counts as ours. */
  ours: number
  /** Of these, those without an answer: the server may not have counted them yet. Those of a killed process stay to its end. */
  unanswered: number
}

export const FRESH: Budget = { closedUntil: 0, throttled: 0, sent: [], window: null }

/** The budget as text; `closedUntil` is stored beside it. */
export function budgetText(budget: Budget): string {
  return JSON.stringify({ ...budget, closedUntil: undefined })
}

export function budgetOf(text: string | null, closedUntil: number): Budget {
  return { ...FRESH, ...(text === null ? {} : (JSON.parse(text) as Partial<Budget>)), closedUntil }
}

/** The limit of requests a minute that a server announced last, in a stored text; null if it announced none. */
export function announcedLimit(text: string | null): number | null {
  return budgetOf(text, 0).window?.limit ?? null
}

/** Our own ceiling in whole requests: no `windowMs` hold more than `requests`. */
export interface Ceiling {
  requests: number
  windowMs: number
}

/** From 1 a minute on, 60 seconds hold the whole part of the rate. Below, one request leaves in 1/rate minutes: 0.5 is one in two minutes. */
export function ceilingOf(requestsPerMinute: number): Ceiling {
  return requestsPerMinute < 1
    ? { requests: 1, windowMs: Math.ceil(MINUTE_MS / requestsPerMinute) }
    : { requests: Math.floor(requestsPerMinute), windowMs: MINUTE_MS }
}

/** The part of the announced limit that is ours. */
export function shareOf(limit: number, { sharePercent }: Pick<RateRules, 'sharePercent'>): number {
  return Math.max(1, Math.floor((limit * sharePercent) / 100))
}

/** The budget without what is over, or lies further in the future than it can: then the clock was set back. */
export function asOfNow(budget: Budget, { requestsPerMinute }: RateRules, now: number): Budget {
  const { closedUntil, throttled, sent, window } = budget
  const countedMs = ceilingOf(requestsPerMinute ?? 1).windowMs + ARRIVAL_MS
  const isOver = window !== null && (now >= window.endsAt || window.endsAt > now + 2 * MINUTE_MS)
  return {
    closedUntil: closedUntil - now > LONGEST_MS ? 0 : closedUntil,
    throttled,
    // What lies in the future was taken before the clock was set back: as if now. Whoever waits writes that, so the wait ends.
    sent: sent
      .map(([at, count]) => [Math.min(at, now + HALF_SECOND_MS), count] as const)
      .filter(([at]) => at + countedMs > now),
    window: isOver ? notBegun(window.limit) : window,
  }
}

/** The server's next window, which no request has begun yet. */
function notBegun(limit: number): Window {
  return { begunAt: 0, endsAt: 0, isHeard: false, limit, remaining: limit, ours: 0, unanswered: 0 }
}

/** What a request has to wait for. */
export interface Wait {
  /** Infinity: for an answer. */
  until: number
  reason: string
}

/** What the next request has to wait for longest; null if it may leave. `budget` is a result of `asOfNow`. */
export function waitFor(budget: Budget, rules: RateRules, now: number, inFlight: number): Wait | null {
  const { closedUntil, throttled, window } = budget
  const waits = [ceilingWait(budget, rules, now)]
  if (closedUntil > now) waits.push({ until: closedUntil, reason: 'the server asked for a pause' })
  // After a 429 one request leaves alone: if the pause was too short, all would be refused.
  if (throttled > 0 && inFlight > 0)
    waits.push({ until: Number.POSITIVE_INFINITY, reason: 'a first answer after the pause' })
  if (window && leftIn(window, rules) <= 0)
    waits.push({ until: window.endsAt, reason: `the server's limit of ${window.limit} requests a minute` })
  return waits.reduce((longest, wait) => ((wait?.until ?? 0) > (longest?.until ?? 0) ? wait : longest), null)
}

function ceilingWait({ sent }: Budget, { requestsPerMinute }: RateRules, now: number): Wait | null {
  if (requestsPerMinute === null) return null
  const { requests, windowMs } = ceilingOf(requestsPerMinute)
  let open = requests
  // From the latest back to the one that fills the window.
  for (const [at, count] of sent.toReversed()) {
    const goneAt = at + windowMs + ARRIVAL_MS
    if (goneAt > now) open -= count
    if (open <= 0) return { until: goneAt, reason: `our own limit of ${requestsPerMinute} requests a minute` }
  }
  return null
}

/** Others may use their share of the limit, too. */
function leftIn({ limit, remaining, ours, unanswered }: Window, rules: RateRules): number {
  return Math.min(remaining - unanswered, shareOf(limit, rules) - ours)
}

/** Whether a permit changes what other processes have to know. */
export function isCounted({ window }: Budget, { requestsPerMinute }: RateRules): boolean {
  return window !== null || requestsPerMinute !== null
}

/** The budget with one more permit. */
export function withPermit(budget: Budget, rules: RateRules, now: number): Budget {
  const { sent, window } = budget
  return {
    ...budget,
    sent: rules.requestsPerMinute === null ? [] : withSent(sent, now),
    window: window && {
      ...window,
      ...(window.begunAt === 0 ? { begunAt: now, endsAt: now + MINUTE_MS + SLACK_MS } : {}),
      ours: window.ours + 1,
      unanswered: window.unanswered + 1,
    },
  }
}

function withSent(sent: Budget['sent'], at: number): Budget['sent'] {
  const end = Math.ceil(at / HALF_SECOND_MS) * HALF_SECOND_MS
  const [lastEnd, count] = sent.at(-1) ?? [0, 0]
  // The last one is later if the clock of another process is ahead, or ours was set back.
  return lastEnd >= end ? [...sent.slice(0, -1), [lastEnd, count + 1]] : [...sent, [end, 1]]
}

/** What was known of the server's window when a request left; null if nothing was. */
export type Permit = Pick<Window, 'begunAt' | 'remaining'> | null

/** The end of a request that was no 429. */
interface Answer {
  at: number
  permit: Permit
  /** Null if no answer came. */
  announced: RateHeaders | null
  /** Other requests of this process that are on their way. */
  inFlight: number
}

export function afterAnswer(budget: Budget, answer: Answer): Budget {
  const { at, announced } = answer
  // Nothing leaves while the budget is closed: this request left before the 429, in a window that is used up.
  if (at < budget.closedUntil) return budget
  const pauseMs = pauseOf(announced)
  return {
    ...budget,
    throttled: announced ? 0 : budget.throttled,
    window: windowAfter(budget.window, answer),
    closedUntil: pauseMs > 0 ? Math.max(budget.closedUntil, at + pauseMs) : budget.closedUntil,
  }
}

/** Milliseconds for which a server wants no request: it has failed, or a window longer than a minute is used up. */
function pauseOf(announced: RateHeaders | null): number {
  const { retryAfterMs, limit, remaining, resetMs } = announced ?? {}
  // Some servers write a limit of 0 for no limit.
  const isUsedUp = remaining === 0 && limit !== 0 && (resetMs ?? 0) > MINUTE_MS
  return Math.max(retryAfterMs ?? 0, isUsedUp ? Math.min((resetMs ?? 0) + ROUNDING_MS, LONGEST_MS) : 0)
}

function windowAfter(last: Window | null, { at, permit, announced, inFlight }: Answer): Window | null {
  // An answer may be written late, when others have begun the next window, or this one has ended.
  if (last && last.begunAt > at) return last
  const known = last && at >= last.endsAt ? notBegun(last.limit) : last
  const isIn = known !== null && known.begunAt > 0 && known.begunAt === permit?.begunAt
  // One that left before any window was known was on its way when this one was heard of.
  const window =
    known && (isIn || !permit) ? { ...known, unanswered: Math.max(0, known.unanswered - 1) } : known
  if (!announced?.limit || announced.remaining === null)
    // The server may have counted it all the same.
    return isIn && window ? { ...window, remaining: Math.max(0, window.remaining - 1) } : window
  const { limit, remaining } = announced
  const endsAt = at + endOf(announced)
  const ours = Math.max(1, limit - remaining)
  const fresh = { begunAt: at, endsAt, isHeard: true, limit, remaining, ours, unanswered: inFlight }
  // A request that left in a window that has ended shows nothing of the next, unless it was the first there.
  if (!window || window.begunAt === 0) return !permit || remaining >= limit - 1 ? fresh : window
  const least = Math.min(window.remaining, remaining)
  if (!permit) return { ...window, remaining: least, ours: Math.max(window.ours, limit - least) }
  if (!isIn) return window
  if (!window.isHeard) return { ...window, isHeard: true, endsAt, limit, remaining }
  // More than when the request left: a new window has begun.
  if (remaining > permit.remaining)
    return { ...fresh, begunAt: window.begunAt, unanswered: window.unanswered }
  return { ...window, limit, remaining: least }
}

/** Milliseconds until a window ends of which nothing was known before this answer. */
function endOf({ resetMs }: RateHeaders): number {
  return resetMs === null ? MINUTE_MS + SLACK_MS : Math.min(resetMs, MINUTE_MS) + ROUNDING_MS
}

/**
 * The budget after a 429. The pause is what the server announced, else the rest of the known window or the
 * fallback, whichever is longer. From the second 429 in a row on, it is a growing pause if that is longer.
 * @param jitterMs Keeps several processes from sending again at the same instant.
 */
export function afterThrottle(
  budget: Budget,
  announced: RateHeaders,
  rules: RateRules,
  at: number,
  jitterMs: number,
): Budget {
  const { window, throttled, closedUntil } = budget
  // Of several requests in flight together, only the first shows whether the last pause was long enough.
  const isNews = at >= closedUntil
  const windowMs = window ? window.endsAt - at : 0
  const announcedMs = announced.retryAfterMs ?? announced.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = isNews && throttled > 0 ? Math.min(1000 * 2 ** throttled, rules.fallbackWaitMs) : 0
  const pauseMs = Math.min(Math.max(announcedMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...budget,
    window: null,
    throttled: throttled + (isNews ? 1 : 0),
    closedUntil: Math.max(closedUntil, at + pauseMs),
  }
}

/** True for a 429, and for a failure with a pause beyond `maxWaitMs`, which the rate limiter must remember. */
export function asksForPause(status: number, { retryAfterMs }: RateHeaders, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
}

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || status >= 500
}
