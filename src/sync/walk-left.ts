/** What tells how fast a running walk goes. Times are ISO 8601. */
export interface WalkPace {
  startedAt: string
  /** Of this run. */
  pages: number
  rowsSeen: number
  /** Of the walk: its distinct items in all its runs, and the length of the list. */
  walkSeen: number | null
  total: number | null
  updatedAt: string | null
  /** The latest end of a wait for its rate budget, which may be past. */
  waitingUntil: string | null
}

/** One page tells nothing of the speed: its request may have waited. */
const LEAST_PAGES = 2

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/**
 * Milliseconds that a walk still takes at the speed of its run so far, waits for the rate limit included, and not less than the
 * present wait; null if nothing tells. `now`: epoch milliseconds.
 */
export function walkLeft(
  { pages, rowsSeen, walkSeen, total, startedAt, updatedAt, waitingUntil }: WalkPace,
  now: number,
): number | null {
  if (walkSeen === null || total === null || updatedAt === null) return null
  if (pages < LEAST_PAGES || rowsSeen === 0) return null
  const spent = Date.parse(updatedAt) - Date.parse(startedAt)
  const until = waitingUntil === null ? 0 : Date.parse(waitingUntil) - now
  const wait = until <= LONGEST_WAIT_MS ? until : 0
  return Math.round(Math.max((spent / rowsSeen) * Math.max(total - walkSeen, 0), wait, 0))
}

/** How far a walk is, in whole percent of its items; null if its length is unknown. */
export function walkPercent(seen: number | null, total: number | null): number | null {
  // An item that came since the first answer is no part of its total.
  return seen === null || total === null || total === 0
    ? null
    : Math.floor((100 * Math.min(seen, total)) / total)
}
