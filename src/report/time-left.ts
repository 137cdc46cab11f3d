/** What a rate limit lets go at once at its beginning says nothing of how fast a run goes on. */
const LEAST_MS = 60_000

/** How far a run is with its list. Times in milliseconds. */
export interface Pace {
  /** Answers of this run, and how long ago it began. */
  pages: number
  runMs: number
  /** How long it still has to wait for its limit. */
  waitMs: number
  /** Null: unknown. */
  pagesLeft: number | null
}

/** The one estimate of the milliseconds until a walk has read its list: by its speed so far. Null before that is known, and when all is read. */
export function timeLeft({ pages, runMs, waitMs, pagesLeft }: Pace): number | null {
  if (!pagesLeft || pages === 0 || runMs < LEAST_MS) return null
  return Math.round(Math.max((runMs / pages) * pagesLeft, waitMs))
}
