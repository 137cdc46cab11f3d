import { type Answered, currentWindow, MINUTE_MS, type Window } from './rate-window.ts'

/** A limit that no header announces, as far as 429s have told it. Times are epoch milliseconds. */
export interface Unannounced {
  /** Answers in the minute before the last 429, and when the first of them came. */
  count: number
  firstAt: number
  /** How many the 429 before had let through; null where that tells nothing. */
  measured: number | null
  /** Requests a minute, since two 429s in a row have come after the same number; and since when. */
  limit: number | null
  learnedAt: number
}

export const NOT_MEASURED: Unannounced = { count: 0, firstAt: 0, measured: null, limit: null, learnedAt: 0 }

/** Then it is measured again, which costs a 429: it may have been raised, or others may have used a part of it. */
const LEARNED_FOR_MS = 3_600_000

/** Servers count badly under concurrency. */
const ALIKE = 0.05

/** Those that end their pause sooner count by something else than the minute. */
const SHORTEST_MS = 55_000

/** With answers that announced nothing, of before a 429 or of requests that were on their way then. */
export function withCounted(
  before: Unannounced,
  answeredAt: readonly number[],
  throttledAt: number,
): Unannounced {
  const counted = answeredAt.filter((at) => at > throttledAt - MINUTE_MS)
  const first = before.count > 0 ? before.firstAt : Number.POSITIVE_INFINITY
  return { ...before, count: before.count + counted.length, firstAt: Math.min(first, ...counted) }
}

/** What is known when the first answer after a 429 comes, by when all have told how many they had before it. */
export function concluded(
  { count, firstAt, measured }: Unannounced,
  closedUntil: number,
  at: number,
): Unannounced {
  if (count === 0 || closedUntil - firstAt < SHORTEST_MS) return NOT_MEASURED
  const isAlike = measured !== null && Math.abs(count - measured) <= Math.max(1, measured * ALIKE)
  return {
    ...NOT_MEASURED,
    measured: count,
    limit: isAlike ? Math.min(count, measured) : null,
    learnedAt: at,
  }
}

/** An answer that announces nothing begins a window of the limit that was learned, as one that announces it would. */
export function withLearned(
  answered: Answered,
  { limit, learnedAt }: Unannounced,
  window: Window | null,
): Answered {
  const { at, leftIn, told } = answered
  // One that left in the last window may have been counted there.
  const begins = leftIn === null && !currentWindow(window, at)
  if (!begins || !told || told.limit || limit === null || at > learnedAt + LEARNED_FOR_MS) return answered
  return { ...answered, told: { ...told, limit, remaining: limit - 1 } }
}
