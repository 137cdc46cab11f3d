import type { RateHeaders } from './rate-headers.ts'

export const MINUTE_MS = 60_000

/** Servers count in whole seconds, so what they announce may end up to a second later. */
export const ROUNDING_MS = 1000

/** Clocks, timers and ways through the network that are not quite alike, over one window. */
export const SLACK_MS = 250

/** A window of the server as far as its headers tell. */
export interface Window {
  limit: number
  remaining: number
  /** How many of its requests were ours; those before its first answer are all taken for ours. */
  ours: number
  endsAt: number
}

/** An answer other than 429, or the end of a request that got none. */
export interface Answered {
  /** Epoch milliseconds. */
  at: number
  /** The window that was known, and not over, when the request left: it decides what the answer means. */
  leftIn: Window | null
  announced: RateHeaders | null
}

/**
 * How many more may leave. Others are left their share, less what they have used of it already: what is unanswered of
 * ours, be it lost with a process that was killed, is none of theirs.
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

/** The window that is known and not over. */
export function currentWindow(window: Window | null, now: number): Window | null {
  return window && now < window.endsAt ? window : null
}

/** The window that an answer speaks of; null where it speaks of none. */
function announcedWindow({ at, announced }: Answered): Window | null {
  // A limit of 0 is how some servers write that there is none; with this answer they have let one through.
  if (!announced?.limit || announced.remaining === null) return null
  const { limit, remaining, resetMs } = announced
  const lasts = resetMs === null ? MINUTE_MS + SLACK_MS : Math.min(resetMs, MINUTE_MS) + ROUNDING_MS
  return { limit, remaining, ours: Math.max(1, limit - remaining), endsAt: at + lasts }
}

/**
 * The window after an answer. Fixed windows begin with the first request that is counted, and nothing but the counter's
 * jump tells so. An answer is compared with what was known when its request left, since answers overtake each other; a
 * rise by no more than `inFlight` is no jump, since some servers count badly under concurrency. The end is reckoned from
 * the first answer, which is never too early.
 */
export function windowAfter(kept: Window | null, answered: Answered, inFlight: number): Window | null {
  const { at, leftIn: left } = answered
  const known = currentWindow(kept, at)
  const fresh = announcedWindow(answered)
  const isSame = left !== null && left.endsAt === known?.endsAt
  if (!fresh) return known && mayCount(isSame, answered) ? withOneMore(known, known.remaining - 1) : kept
  const isFirst = fresh.remaining >= fresh.limit - 1
  const jumped = left !== null && (isFirst || fresh.remaining > left.remaining + inFlight)
  // One that left in a window which is over by now tells nothing of the next, but by a jump.
  if (!known) return left === null || jumped ? fresh : kept
  const counted = withOneMore(known, Math.min(known.remaining, fresh.remaining))
  if (isSame) return jumped ? fresh : counted
  // It left before the window that is known now was seen to begin, and may have been counted in the one before.
  return left === null || jumped ? counted : known
}

/** What the server says nothing of may have been counted all the same; what left before any window was known, if it was answered. */
function mayCount(isSame: boolean, { leftIn: left, announced }: Answered): boolean {
  return isSame || (left === null && announced !== null)
}

function withOneMore(window: Window, remaining: number): Window {
  return { ...window, ours: window.ours + 1, remaining: Math.max(0, remaining) }
}
