import { LONGEST_MS } from './rate-headers.ts'
import { NOT_MEASURED, type Unannounced } from './rate-unannounced.ts'
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

/**
 * What all processes on the mirror together know of one budget. Times are epoch milliseconds. Each process takes from it
 * a block of requests that it may send, and accounts for them when it takes the next: so that none of them has to write
 * for each request, and all together never send more than one of them could.
 */
export interface Budget {
  /** Our requests of the last minute, and the last one, in half seconds: when one ended, and how many left in it. Oldest first. */
  sent: readonly (readonly [number, number])[]
  blocks: readonly Block[]
  window: Window | null
  /** When a request ended last; 0 for never. */
  heardAt: number
  /** Nothing is sent before this time. */
  closedUntil: number
  /** 429s since the last other answer, and the time of the last one. */
  throttled: number
  throttledAt: number
  unannounced: Unannounced
}

/** What a process had when it accounted for its requests last. */
export interface Block {
  by: string
  /** Requests that it may send, and may have sent since. */
  count: number
  /** Those that have not left by then do not leave any more. */
  until: number
  /** Requests that had left and were not answered. */
  inFlight: number
}

export const FRESH: Budget = {
  sent: [],
  blocks: [],
  window: null,
  heardAt: 0,
  closedUntil: 0,
  throttled: 0,
  throttledAt: 0,
  unannounced: NOT_MEASURED,
}

/** A block that is used over a longer time is taken anew. */
export const BLOCK_MS = 10_000

const HALF_SECOND_MS = 500

/**
 * The budget as far as it can be true now. What lies in the future was written before the clock went back: it counts as
 * of now, and has to be kept so, or nothing would ever leave; a pause further away than any server is believed is none.
 * A process that has not accounted for its block for a minute is dead, or has sent nothing that could count still.
 */
export function asOfNow(budget: Budget, now: number): Budget {
  const { sent, blocks, window, closedUntil, unannounced } = budget
  return {
    ...budget,
    sent: sent
      .map(([at, count]) => [Math.min(at, now + HALF_SECOND_MS), count] as const)
      // A ceiling below one a minute counts its last request for longer.
      .filter(([at], index) => now <= at + MINUTE_MS + ROUNDING_MS || index === sent.length - 1),
    blocks: blocks
      .map((block) => ({ ...block, until: Math.min(block.until, now + BLOCK_MS) }))
      .filter(({ count, until, inFlight }) => count + inFlight > 0 && now <= until + MINUTE_MS + ROUNDING_MS),
    window: window && { ...window, endsAt: Math.min(window.endsAt, now + MINUTE_MS + ROUNDING_MS) },
    heardAt: Math.min(budget.heardAt, now),
    throttledAt: Math.min(budget.throttledAt, now),
    unannounced: { ...unannounced, learnedAt: Math.min(unannounced.learnedAt, now) },
    closedUntil: closedUntil - now > LONGEST_MS ? 0 : closedUntil,
  }
}

/** The budget with requests that left at these times. */
export function withSent(budget: Budget, times: readonly number[]): Budget {
  const counts = new Map(budget.sent)
  for (const time of times) {
    const end = Math.ceil(time / HALF_SECOND_MS) * HALF_SECOND_MS
    counts.set(end, (counts.get(end) ?? 0) + 1)
  }
  return { ...budget, sent: [...counts].toSorted(([a], [b]) => a - b) }
}

/** Requests that may have left and are not accounted for. */
export function unaccounted({ blocks }: Budget): number {
  return blocks.reduce((sum, { count }) => sum + count, 0)
}

/** Requests of which the server's answer is not known: it may have counted them. */
export function unanswered({ blocks }: Pick<Budget, 'blocks'>): number {
  return blocks.reduce((sum, { count, inFlight }) => sum + count + inFlight, 0)
}

/** Those of them that may be on their way. */
export function onTheirWay({ blocks }: Budget, now: number): number {
  return unanswered({ blocks: blocks.filter((block) => now <= givenUpAt(block)) })
}

/** A process that has said nothing until then was killed, and what it sent has arrived. */
function givenUpAt({ until }: Block): number {
  return until + BLOCK_MS
}

/**
 * Whether any request has ended in the time that counts: since the last 429, since a process was killed, which may have
 * used all that seems to be left, and since the server's window began anew where others use up a part of it.
 */
export function isHeard({ heardAt, throttledAt, window, blocks }: Budget, now: number): boolean {
  const isShared = window !== null && window.ours < window.limit - window.remaining
  const since = isShared && now >= window.endsAt ? window.endsAt : now - MINUTE_MS
  const givenUp = blocks.map(givenUpAt).filter((at) => at < now)
  return heardAt > Math.max(since, throttledAt, ...givenUp)
}

/** As the memory keeps it. */
export function budgetText(budget: Budget): string {
  return JSON.stringify({ ...budget, closedUntil: undefined })
}

/** What the memory kept; what an earlier version of the program did not write there is as at the beginning. */
export function budgetOf(text: string | null, closedUntil: number): Budget {
  return { ...FRESH, ...(text === null ? {} : (JSON.parse(text) as Partial<Budget>)), closedUntil }
}
