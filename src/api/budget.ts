import { type LearnedLimit, NOT_MEASURED } from './learned-limit.ts'
import { LONGEST_MS } from './rate-headers.ts'
import { MINUTE_MS, ROUNDING_MS, type Window } from './rate-window.ts'

/** What we allow ourselves, and how we behave when the server says little. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests, and 0.5 is one in two minutes; null for none. */
  requestsPerMinute: number | null
  /** How much of the announced budget is ours. */
  sharePercent: number
  /** The wait after a 429 that does not say when to come back. */
  fallbackWaitMs: number
}

/** What all processes on the mirror together know of one budget. Times are epoch milliseconds. */
export interface Budget {
  /** Permits that our own ceiling counts, in half seconds: when one ended, and how many were taken in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  inFlight: readonly InFlight[]
  window: Window | null
  /** When a request ended last; 0 for never. */
  heardAt: number
  /** No request leaves before this time. */
  closedUntil: number
  /** 429s since the last other answer, and the time of the last one. */
  throttled: number
  throttledAt: number
  learned: LearnedLimit
}

/** The requests of one process that had no answer when it last wrote, and when it took its last permit. */
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

/** A process that has taken no permit for so long may have been killed, and what it sent has arrived. */
const GIVEN_UP_MS = 20_000

/**
 * The budget without what is over. A time in the future was written before the clock went back, and counts as now: the
 * budget must be kept so, or no request would ever leave. A pause longer than any that we believe a server is none.
 */
export function asOfNow(budget: Budget, now: number): Budget {
  const { sent, inFlight, window, closedUntil, learned } = budget
  return {
    ...budget,
    sent: countedOf(sent, now),
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

function countedOf(sent: Budget['sent'], now: number): Budget['sent'] {
  // A ceiling below one a minute counts its last request for longer.
  const first = sent.findIndex(([at], index) => isRecent(at, now) || index === sent.length - 1)
  const counted = first > 0 ? sent.slice(first) : sent
  const latest = now + HALF_SECOND_MS
  const isFuture = (counted.at(-1)?.[0] ?? 0) > latest
  return isFuture ? counted.map(([at, count]) => [Math.min(at, latest), count]) : counted
}

function isRecent(at: number, now: number): boolean {
  return now <= at + MINUTE_MS + ROUNDING_MS
}

/** The budget after a process took one more permit. */
export function withPermit(budget: Budget, by: string, rules: RateRules, now: number): Budget {
  const own = budget.inFlight.find((one) => one.by === by)?.count ?? 0
  const taken = withInFlight(budget, { by, count: own + 1, at: now })
  return rules.requestsPerMinute === null ? taken : { ...taken, sent: withSent(budget.sent, now) }
}

/** The budget with so many requests of a process in flight. */
export function withInFlight(budget: Budget, own: InFlight): Budget {
  const others = budget.inFlight.filter(({ by }) => by !== own.by)
  return { ...budget, inFlight: own.count > 0 ? [...others, own] : others }
}

function withSent(sent: Budget['sent'], at: number): Budget['sent'] {
  const end = Math.ceil(at / HALF_SECOND_MS) * HALF_SECOND_MS
  const [lastEnd, count] = sent.at(-1) ?? [0, 0]
  // The last one is later where the clock of another process is ahead, or ours went back.
  return lastEnd >= end ? [...sent.slice(0, -1), [lastEnd, count + 1]] : [...sent, [end, 1]]
}

/** Requests whose answer is not known: the server may have counted them. */
export function unanswered({ inFlight }: Pick<Budget, 'inFlight'>): number {
  return inFlight.reduce((sum, { count }) => sum + count, 0)
}

/** Those of them that the server may not have counted yet. */
export function onTheirWay({ inFlight }: Pick<Budget, 'inFlight'>, now: number): number {
  return unanswered({ inFlight: inFlight.filter((one) => now <= givenUpAt(one)) })
}

function givenUpAt({ at }: InFlight): number {
  return at + GIVEN_UP_MS
}

/**
 * Whether a request has ended in the time that counts: since the last 429, since a process was killed, which may have used
 * all that seems to be left, and since the server's window began again where others use a part of it.
 */
export function isHeard({ heardAt, throttledAt, window, inFlight }: Budget, now: number): boolean {
  const isShared = window !== null && window.ours < window.limit - window.remaining
  const since = isShared && now >= window.endsAt ? window.endsAt : now - MINUTE_MS
  const givenUp = inFlight.map(givenUpAt).filter((at) => at < now)
  return heardAt > Math.max(since, throttledAt, ...givenUp)
}

/** A budget as a store keeps it, for all processes on the mirror and for the next ones. */
export interface StoredBudget {
  /** Epoch milliseconds; 0 for never. */
  closedUntil: number
  /** As `budgetText` writes it; null before the first time. */
  known: string | null
  /** What the process that wrote last waits for, and until when; for people. */
  waitingFor: string | null
  waitingUntil: number
}

export interface BudgetStore {
  /** `version`: another one after each change, and never empty. */
  read(scope: string): Promise<Pick<StoredBudget, 'closedUntil' | 'known'> & { version: string }>
  /**
   * Writes what `next` returns if the version is still this one, and returns the new version; null if not. `next` is synchronous
   * and called in the last moment, when no lock is waited for any more, since it looks at the clock; again where the
   * transaction is undone.
   */
  compareAndSet(scope: string, version: string, next: () => StoredBudget): Promise<string | null>
}

/** As a store keeps it, beside `closedUntil`. */
export function budgetText(budget: Budget): string {
  return JSON.stringify({ ...budget, closedUntil: undefined })
}

/** What a store kept; what an earlier version of the program did not write is as at the beginning. */
export function budgetOf(text: string | null, closedUntil: number): Budget {
  const kept = text === null ? {} : (JSON.parse(text) as Partial<Budget> & OfBlocks)
  return { ...FRESH, ...(kept.blocks ? withoutBlocks(kept, kept.blocks) : kept), closedUntil }
}

/** Up to version 0.1 each process took a block of permits at once. */
interface OfBlocks {
  blocks?: readonly { until: number; count: number }[]
  unannounced?: LearnedLimit
}

/** All that a block allowed counts as sent. The window is left out, so that the next request goes alone and learns it. */
function withoutBlocks(
  kept: Partial<Budget> & OfBlocks,
  blocks: Required<OfBlocks>['blocks'],
): Partial<Budget> {
  const { sent = [], throttled = 0, throttledAt = 0, unannounced: learned = NOT_MEASURED } = kept
  const taken = blocks.map(({ until, count }) => [until, count] as const)
  return {
    sent: [...sent, ...taken].toSorted(([one], [other]) => one - other),
    throttled,
    throttledAt,
    learned,
  }
}
