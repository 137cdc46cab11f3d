import { LONGEST_MS, type RateHeaders } from './headers.ts'
import {
  type Answered,
  concluded,
  type LearnedLimit,
  MINUTE_MS,
  NOT_MEASURED,
  ROUNDING_MS,
  type Window,
  windowAfter,
  withCounted,
  withLearned,
} from './window.ts'

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
  /** Permits that our own ceiling counts: the end of a half second, and those taken in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  inFlight: readonly InFlight[]
  window: Window | null
  /** The end of the last request; 0 for none. */
  heardAt: number
  /** No request leaves before this time. */
  closedUntil: number
  /** 429s since the last other response. */
  throttled: number
  /** The time of the last 429. */
  throttledAt: number
  learned: LearnedLimit
}

/** A process's requests without a response when it last wrote, and the time of its last permit. */
export interface InFlight {
  by: string
  count: number
  at: number
}

export const FRESH: Budget = {
  sent: [],
  inFlight: [],
  window: null,
  heardAt: 0,
  closedUntil: 0,
  throttled: 0,
  throttledAt: 0,
  learned: NOT_MEASURED,
}

const HALF_SECOND_MS = 500

/** A process that has taken no permit for this long may have been killed; its requests have arrived by then. */
const GIVEN_UP_MS = 20_000

/**
 * The budget without what has expired. A time in the future, written before the clock was set back, becomes now. The caller must store
 * the result: else each reading would move it to its own now, and no request would ever leave. A pause beyond LONGEST_MS is dropped.
 */
export function asOfNow(budget: Budget, now: number): Budget {
  const { sent, inFlight, window, closedUntil, learned } = budget
  return {
    ...budget,
    sent: stillCounted(sent, now),
    inFlight: inFlight
      .map((one) => ({ ...one, at: Math.min(one.at, now) }))
      .filter(({ count, at }) => count > 0 && isRecent(at, now)),
    window: window && { ...window, endsAt: Math.min(window.endsAt, now + MINUTE_MS + ROUNDING_MS) },
    heardAt: Math.min(budget.heardAt, now),
    throttledAt: Math.min(budget.throttledAt, now),
    learned: { ...learned, learnedAt: Math.min(learned.learnedAt, now) },
    closedUntil: closedUntil - now > LONGEST_MS ? 0 : closedUntil,
  }
}

function stillCounted(sent: Budget['sent'], now: number): Budget['sent'] {
  // The last entry stays: a ceiling below one a minute counts it for longer.
  const first = sent.findIndex(([at], index) => isRecent(at, now) || index === sent.length - 1)
  const counted = first > 0 ? sent.slice(first) : sent
  const latest = now + HALF_SECOND_MS
  const isFuture = (counted.at(-1)?.[0] ?? 0) > latest
  return isFuture ? counted.map(([at, count]) => [Math.min(at, latest), count]) : counted
}

function isRecent(at: number, now: number): boolean {
  return now <= at + MINUTE_MS + ROUNDING_MS
}

/** The budget with one more permit of a process. */
export function withPermit(budget: Budget, by: string, rules: RateRules, now: number): Budget {
  const own = budget.inFlight.find((one) => one.by === by)?.count ?? 0
  const taken = withInFlight(budget, { by, count: own + 1, at: now })
  return rules.requestsPerMinute === null ? taken : { ...taken, sent: withSent(budget.sent, now) }
}

/** The budget with the requests in flight of one process replaced. */
function withInFlight(budget: Budget, own: InFlight): Budget {
  const others = budget.inFlight.filter(({ by }) => by !== own.by)
  return { ...budget, inFlight: own.count > 0 ? [...others, own] : others }
}

function withSent(sent: Budget['sent'], at: number): Budget['sent'] {
  const end = Math.ceil(at / HALF_SECOND_MS) * HALF_SECOND_MS
  const [lastEnd, count] = sent.at(-1) ?? [0, 0]
  // The last one is later if the clock of another process is ahead, or ours was set back.
  return lastEnd >= end ? [...sent.slice(0, -1), [lastEnd, count + 1]] : [...sent, [end, 1]]
}

/** Requests without a known response: the server may have counted them. */
export function unanswered({ inFlight }: Pick<Budget, 'inFlight'>): number {
  return inFlight.reduce((sum, { count }) => sum + count, 0)
}

/** Requests in flight that the server may not have counted yet. */
export function onTheirWay({ inFlight }: Pick<Budget, 'inFlight'>, now: number): number {
  return unanswered({ inFlight: inFlight.filter((one) => now <= givenUpAt(one)) })
}

function givenUpAt({ at }: InFlight): number {
  return at + GIVEN_UP_MS
}

/**
 * Whether a request has ended recently enough to show what is left: after the last 429; after every killed process was given up, since
 * its requests may have used what seems to be left; and within the last minute. If others share the limit and the known window has ended,
 * its end counts in place of that minute.
 */
export function isHeard({ heardAt, throttledAt, window, inFlight }: Budget, now: number): boolean {
  const isShared = window !== null && window.ours < window.limit - window.remaining
  const since = isShared && now >= window.endsAt ? window.endsAt : now - MINUTE_MS
  const givenUp = inFlight.map(givenUpAt).filter((at) => at < now)
  return heardAt > Math.max(since, throttledAt, ...givenUp)
}

/** The budget as text; `closedUntil` is stored beside it. */
export function budgetText(budget: Budget): string {
  return JSON.stringify({ ...budget, closedUntil: undefined })
}

/** The budget of a stored text. Fields that an earlier version did not write are as in FRESH. */
export function budgetOf(text: string | null, closedUntil: number): Budget {
  const kept = text === null ? {} : (JSON.parse(text) as Partial<Budget>)
  return { ...FRESH, ...kept, closedUntil }
}

/** The server's limit of requests a minute in a stored text, announced or learned; null if nothing is known of one. */
export function announcedLimit(text: string | null): number | null {
  const { window, learned } = budgetOf(text, 0)
  return window?.limit ?? learned.limit
}

/** True for a 429, and for a failure with a pause beyond `maxWaitMs`, which the rate limiter must remember. */
export function asksForPause(status: number, { retryAfterMs }: RateHeaders, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
}

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || status >= 500
}

/** A 429, or another response that asks for a pause. */
export interface Throttled {
  /** Epoch milliseconds. */
  at: number
  throttled: RateHeaders
  /** Keeps several processes from sending again at the same instant. */
  jitterMs: number
}

/** What a process knows of its own requests and has not written yet. */
export interface Report {
  by: string
  /** Requests in flight now. */
  inFlight: number
  /** In the order in which they came. */
  answers: readonly (Answered | Throttled)[]
  /** Times of responses of the last minute that announced nothing. */
  unannounced: readonly number[]
}

/** The budget now, with what a process has to report. */
export function afterReport(budget: Budget, report: Report, rules: RateRules, now: number): Budget {
  const { by, inFlight, answers, unannounced } = report
  const at = budget.inFlight.find((one) => one.by === by)?.at ?? now
  // The answered requests were in flight together with those that still are.
  const before = withInFlight(asOfNow(budget, now), { by, count: inFlight + answers.length, at })
  const heard = answers.reduce((after, answer) => afterOne(after, answer, rules), before)
  const current = withInFlight(asOfNow(heard, now), { by, count: inFlight, at })
  if (!isCounting(current, now)) return current
  return { ...current, learned: withCounted(current.learned, unannounced, current.throttledAt) }
}

/** True during the pause after a 429, when responses that announced nothing are counted. */
export function isCounting({ throttled, closedUntil }: Budget, now: number): boolean {
  return throttled > 0 && now < closedUntil
}

function afterOne(budget: Budget, answer: Answered | Throttled, rules: RateRules): Budget {
  return 'throttled' in answer ? afterThrottle(budget, answer, rules) : afterAnswer(budget, answer)
}

/** The budget after a response other than 429, or after a request that got none. */
export function afterAnswer(budget: Budget, answered: Answered): Budget {
  const { at, announced } = answered
  // Nothing leaves while the budget is closed: this request left before the 429, in a window that is used up.
  if (at < budget.closedUntil) return budget
  const learned = learnedAfter(budget, answered)
  const meant = withLearned(answered, learned, budget.window)
  return {
    ...budget,
    heardAt: Math.max(budget.heardAt, at),
    throttled: announced ? 0 : budget.throttled,
    window: windowAfter(budget.window, meant, unanswered(budget)),
    learned,
    closedUntil: Math.max(budget.closedUntil, usedUpUntil(answered), silentUntil(answered)),
  }
}

function learnedAfter(
  { learned, throttled, closedUntil }: Budget,
  { at, announced }: Answered,
): LearnedLimit {
  if (announced?.limit) return NOT_MEASURED
  return announced && throttled > 0 ? concluded(learned, closedUntil, at) : learned
}

/** Until when a server that failed wants no request; 0 if it does not say. */
function silentUntil({ at, announced }: Answered): number {
  return announced?.retryAfterMs ? at + announced.retryAfterMs : 0
}

/** The end of a used-up window longer than a minute, which counts as a pause; else 0. */
function usedUpUntil({ at, announced }: Answered): number {
  // Some servers write a limit of 0 for no limit.
  const resetMs = announced?.remaining === 0 && announced.limit !== 0 ? announced.resetMs : null
  return resetMs !== null && resetMs > MINUTE_MS ? at + Math.min(resetMs + ROUNDING_MS, LONGEST_MS) : 0
}

/**
 * The budget after a 429. The pause is what the server announced, else the rest of the known window or the
 * fallback, whichever is longer. From the second 429 in a row on, it is a growing pause if that is longer.
 */
export function afterThrottle(budget: Budget, answer: Throttled, rules: RateRules): Budget {
  const { at, throttled: announced, jitterMs } = answer
  // Of several requests in flight together, only the first shows whether the last pause was long enough.
  const isNews = at >= budget.closedUntil
  const { window, throttled } = budget
  const windowMs = window && window.endsAt > at ? window.endsAt - at : 0
  const announcedMs = announced.retryAfterMs ?? announced.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = isNews && throttled > 0 ? Math.min(1000 * 2 ** throttled, rules.fallbackWaitMs) : 0
  const pauseMs = Math.min(Math.max(announcedMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...budget,
    window: null,
    throttledAt: at,
    closedUntil: Math.max(budget.closedUntil, at + pauseMs),
    throttled: throttled + (isNews ? 1 : 0),
  }
}
