import type { Urgency } from '../../sync/types.ts'
import { LONGEST_MS, type RateHeaders } from './headers.ts'

// The decisions about one budget of requests, as pure functions of its row and the time. limiter.ts reads and writes the row.

const MINUTE_MS = 60_000

/** Servers count in whole seconds, so a window or a pause may end up to a second later than announced. */
export const ROUNDING_MS = 1000

/** Differences of clocks, timers and network delays, over one window. */
const SLACK_MS = 250

/** The server's window may end so long before ours: what leaves then would be counted in its next one. */
const BEFORE_END_MS = 500

const HALF_SECOND_MS = 500

/**
 * A request may arrive this much later than its permit was taken, while its process starts or a connection opens. Without this margin,
 * those that follow a late one could arrive in the same minute. It costs less than 2 % of a minute.
 */
const ARRIVAL_MS = 1000

/** A first answer that takes longer is not waited for: the process that asked may have been killed. */
const FIRST_ANSWER_MS = 10_000

/** What the configuration says. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests; 0.5 is one in two minutes; null is none. */
  requestsPerMinute: number | null
  /** Our part of the announced limit. */
  sharePercent: number
  /** The part of the budget that refreshes may use. */
  refreshPercent: number
  /** The pause after a 429 that announces none. */
  fallbackWaitMs: number
}

/** What the processes on a mirror know of one budget; stored with these names. Times are epoch milliseconds. */
export interface Budget {
  /** No request leaves before this time. */
  closedUntil: number
  /** 429s since the last other response. */
  throttled: number
  /**
   * At the beginning and after a pause requests leave one by one, since only an answer shows how many may: until when the
   * answer to the last one is waited for. Null once it has come.
   */
  aloneUntil: number | null
  /** Permits that our own ceiling counts: the end of a half second, and those taken in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  window: Window | null
  /** When a refresh left last. */
  refreshedAt: number
}

/** A window of the server's limit, as far as its answers show it. */
export interface Window {
  /** When its first permit was taken or its first answer came: tells windows apart. 0: none was, yet. */
  begunAt: number
  /** Never too early: counted from the earliest answer in it. */
  endsAt: number
  limit: number
  /** How many requests of ours may still leave. Those of a killed process count as sent. */
  left: number
}

export const FRESH: Budget = {
  closedUntil: 0,
  throttled: 0,
  aloneUntil: 0,
  sent: [],
  window: null,
  refreshedAt: 0,
}

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

/** Our own ceiling in whole requests: from 1 a minute on, 60 seconds hold the whole part of the rate; 0.5 is one in two minutes. */
function ceilingOf(requestsPerMinute: number): { requests: number; windowMs: number } {
  return requestsPerMinute < 1
    ? { requests: 1, windowMs: Math.ceil(MINUTE_MS / requestsPerMinute) }
    : { requests: Math.floor(requestsPerMinute), windowMs: MINUTE_MS }
}

/** The part of the announced limit that is ours. */
function shareOf(limit: number, { sharePercent }: Pick<RateRules, 'sharePercent'>): number {
  return Math.max(1, Math.floor((limit * sharePercent) / 100))
}

/** Requests a minute that may be sent over a long time; null where neither the server nor the configuration limits them. */
export function allowedPerMinute(
  limit: number | null,
  rules: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
): number | null {
  const { requestsPerMinute: most } = rules
  const share = limit === null ? null : shareOf(limit, rules)
  const ceiling = most === null || most < 1 ? most : Math.floor(most)
  return share === null || ceiling === null ? (ceiling ?? share) : Math.min(ceiling, share)
}

/** The budget without what is over, or lies further in the future than it can: then the clock was set back. */
export function asOfNow(budget: Budget, rules: RateRules, now: number): Budget {
  const { closedUntil, aloneUntil, sent, window } = budget
  const countedMs = ceilingOf(rules.requestsPerMinute ?? 1).windowMs + ARRIVAL_MS
  const isOver = window !== null && (now >= window.endsAt || window.endsAt > now + 2 * MINUTE_MS)
  // Others may have used a budget that we left alone for a whole window.
  const isForgotten = isOver && window.begunAt > 0 && now >= window.endsAt + MINUTE_MS
  return {
    ...budget,
    closedUntil: closedUntil - now > LONGEST_MS ? 0 : closedUntil,
    aloneUntil: isForgotten ? (aloneUntil ?? 0) : aloneUntil && Math.min(aloneUntil, now + FIRST_ANSWER_MS),
    // What lies in the future was taken before the clock was set back: as if now. Whoever waits writes that, so the wait ends.
    sent: sent
      .map(([at, count]) => [Math.min(at, now + HALF_SECOND_MS), count] as const)
      .filter(([at]) => at + countedMs > now),
    window: isOver ? notBegun(window.limit, rules) : window,
  }
}

/** The server's next window, which no request has begun yet. */
function notBegun(limit: number, rules: RateRules): Window {
  return { begunAt: 0, endsAt: 0, limit, left: shareOf(limit, rules) }
}

/** What a request has to wait for. */
export interface Wait {
  /** Infinity: for an answer. */
  until: number
  reason: string
}

/** What a request has to wait for longest; null if it may leave. `budget` is a result of `asOfNow`. */
export function waitFor(budget: Budget, rules: RateRules, now: number, urgency: Urgency): Wait | null {
  const { closedUntil, aloneUntil, window } = budget
  const waits: (Wait | null)[] = [ceilingWait(budget, rules, now, urgency)]
  if (closedUntil > now) waits.push({ until: closedUntil, reason: 'the server asked for a pause' })
  if ((aloneUntil ?? 0) > now) waits.push({ until: Number.POSITIVE_INFINITY, reason: 'a first answer' })
  if (window && (window.begunAt > 0 || window.left <= 0)) {
    const reason = `the server's limit of ${window.limit} requests a minute`
    const most = shareOf(window.limit, rules)
    waits.push(
      now >= window.endsAt - BEFORE_END_MS
        ? { until: window.endsAt, reason }
        : roomIn({ left: window.left, most, endsAt: window.endsAt, reason }, budget, rules, now, urgency),
    )
  }
  return waits.reduce((longest, wait) => ((wait?.until ?? 0) > (longest?.until ?? 0) ? wait : longest), null)
}

function ceilingWait(budget: Budget, rules: RateRules, now: number, urgency: Urgency): Wait | null {
  const { requestsPerMinute } = rules
  if (requestsPerMinute === null || budget.sent.length === 0) return null
  const { requests: most, windowMs } = ceilingOf(requestsPerMinute)
  let left = most
  let endsAt = now
  // From the latest back to the one that fills the window.
  for (const [at, count] of budget.sent.toReversed()) {
    left -= count
    endsAt = at + windowMs + ARRIVAL_MS
    if (left <= 0) break
  }
  const reason = `our own limit of ${requestsPerMinute} requests a minute`
  return roomIn({ left, most, endsAt, reason }, budget, rules, now, urgency)
}

/**
 * The wait for a permit where so many of a window are left. A walk that used a whole window at once would keep refreshes waiting for the
 * next one, so in a minute after a refresh others get the refreshes' part of the window evenly over the rest of it.
 */
function roomIn(
  { left, most, endsAt, reason }: { left: number; most: number; endsAt: number; reason: string },
  { refreshedAt }: Budget,
  { refreshPercent }: RateRules,
  now: number,
  urgency: Urgency,
): Wait | null {
  if (left <= 0) return { until: endsAt, reason }
  const isShared = urgency !== 'refresh' && refreshedAt <= now && now < refreshedAt + MINUTE_MS
  const until = isShared ? endsAt - (left / ((most * refreshPercent) / 100)) * MINUTE_MS : now
  return until > now ? { until: Math.ceil(until), reason } : null
}

/** The budget with one more permit. */
export function withPermit(budget: Budget, rules: RateRules, now: number, urgency: Urgency): Budget {
  const { aloneUntil, sent, window, refreshedAt } = budget
  // The end is a guess until its first answer, which comes in time or not at all.
  const begun = { begunAt: now, endsAt: now + MINUTE_MS + FIRST_ANSWER_MS }
  return {
    ...budget,
    aloneUntil: aloneUntil === null ? null : now + FIRST_ANSWER_MS,
    sent: rules.requestsPerMinute === null ? [] : withSent(sent, now),
    window: window && { ...window, ...(window.begunAt === 0 ? begun : {}), left: window.left - 1 },
    refreshedAt: urgency === 'refresh' ? now : refreshedAt,
  }
}

function withSent(sent: Budget['sent'], at: number): Budget['sent'] {
  const end = Math.ceil(at / HALF_SECOND_MS) * HALF_SECOND_MS
  const [lastEnd, count] = sent.at(-1) ?? [0, 0]
  // The last one is later if the clock of another process is ahead, or ours was set back.
  return lastEnd >= end ? [...sent.slice(0, -1), [lastEnd, count + 1]] : [...sent, [end, 1]]
}

/** The end of a request that was no 429. */
interface Answer {
  at: number
  /** `begunAt` of the window in which it left; null if none was known. */
  windowAt: number | null
  /** Null if no answer came. */
  announced: RateHeaders | null
}

export function afterAnswer(budget: Budget, answer: Answer, rules: RateRules): Budget {
  const { at, announced } = answer
  const pauseMs = announced ? pauseOf(announced) : 0
  const closedUntil = pauseMs > 0 ? Math.max(budget.closedUntil, at + pauseMs) : budget.closedUntil
  // Nothing leaves while the budget is closed: this request left before the 429, in a window that is used up.
  if (at < budget.closedUntil) return { ...budget, closedUntil }
  // Without an answer the next one may try.
  if (!announced) return { ...budget, aloneUntil: budget.aloneUntil === null ? null : 0 }
  return {
    ...budget,
    throttled: 0,
    aloneUntil: null,
    window: windowAfter(budget.window, answer, announced, rules),
    closedUntil,
  }
}

/** Milliseconds for which a server wants no request: it has failed, or a window longer than a minute is used up. */
function pauseOf({ retryAfterMs, limit, remaining, resetMs }: RateHeaders): number {
  // Some servers write a limit of 0 for no limit.
  const isUsedUp = remaining === 0 && limit !== 0 && (resetMs ?? 0) > MINUTE_MS
  return Math.max(retryAfterMs ?? 0, isUsedUp ? Math.min((resetMs ?? 0) + ROUNDING_MS, LONGEST_MS) : 0)
}

function windowAfter(
  last: Window | null,
  { at, windowAt }: Answer,
  { limit, remaining, resetMs }: RateHeaders,
  rules: RateRules,
): Window | null {
  if (!limit || remaining === null) return last
  const endsAt = at + (resetMs === null ? MINUTE_MS + SLACK_MS : Math.min(resetMs, MINUTE_MS) + ROUNDING_MS)
  // What was used before the first answer counts as ours.
  if (last === null)
    return { begunAt: at, endsAt, limit, left: shareOf(limit, rules) - Math.max(1, limit - remaining) }
  // An answer to a request of another window shows nothing of this one; nor does one that is written after its window's end.
  const isIn = last.begunAt > 0 && (windowAt ?? last.begunAt) === last.begunAt && at < last.endsAt
  return isIn
    ? { ...last, limit, left: Math.min(last.left, remaining), endsAt: Math.min(last.endsAt, endsAt) }
    : last
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
    window: window && notBegun(window.limit, rules),
    throttled: throttled + (isNews ? 1 : 0),
    aloneUntil: 0,
    closedUntil: Math.max(closedUntil, at + pauseMs),
  }
}
