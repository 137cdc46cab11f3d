import { type Answered, currentWindow, MINUTE_MS, type Window } from './rate-window.ts'

/** A limit that no header announces, as far as 429s have shown it. Times are epoch milliseconds. */
export interface LearnedLimit {
  /** Answers in the minute before the last 429, and when the first of them came. */
  count: number
  firstAt: number
  /** How many came before the 429 before that; null where it shows nothing. */
  measured: number | null
  /** Requests a minute, since two 429s in a row have come after the same number; and since when. */
  limit: number | null
  learnedAt: number
}

export const NOT_MEASURED: LearnedLimit = { count: 0, firstAt: 0, measured: null, limit: null, learnedAt: 0 }

/** It is measured again then, which costs a 429: it may have been raised, or others may have used a part of it. */
const LEARNED_FOR_MS = 3_600_000

/** Servers count badly under concurrency. */
const ALIKE = 0.05

/** Those that end their pause sooner count by something else than the minute. */
const SHORTEST_MS = 55_000

/** Adds answers that announced nothing, from before a 429 or of requests that were on their way then. */
export function withCounted(
  before: LearnedLimit,
  answeredAt: readonly number[],
  throttledAt: number,
): LearnedLimit {
  const counted = answeredAt.filter((at) => at > throttledAt - MINUTE_MS)
  const first = before.count > 0 ? before.firstAt : Number.POSITIVE_INFINITY
  return { ...before, count: before.count + counted.length, firstAt: Math.min(first, ...counted) }
}

/** What the first answer after a 429 shows; by then all processes have written how many answers they had before it. */
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

/** The answer; where it announces nothing it begins a window of the learned limit, as one that announces it would. */
export function withLearned(
  answered: Answered,
  { limit, learnedAt }: LearnedLimit,
  window: Window | null,
): Answered {
  const { at, leftIn, announced } = answered
  // One that left in the last window may have been counted there.
  const begins = leftIn === null && !currentWindow(window, at)
  if (!begins || !announced || announced.limit || limit === null || at > learnedAt + LEARNED_FOR_MS)
    return answered
  return { ...answered, announced: { ...announced, limit, remaining: limit - 1 } }
}
