/** A walk that is being read. Times in milliseconds. */
export interface Pace {
  /** Lists with the same budget share a rate limit. */
  budget: string | null
  /** Answers of this run, how long ago it began, how much of that it waited for its limit, and how long it still has to. */
  pages: number
  runMs: number
  waitedMs: number
  waitMs: number
  /** Null: unknown. */
  pagesLeft: number | null
  /** Requests a minute that its limit allows; null: none is known. */
  perMinute: number | null
}

/** Fewer answers do not show how fast a server is: the beginning of a run is part of the first. */
const ENOUGH_PAGES = 3

/**
 * Milliseconds until a walk has read its list, wherever people are told: by what the limit allows for its requests and those of the other
 * lists, or by the server's speed where that takes longer. Null before one of the two is known, and when all is read.
 * @param all What is being read now.
 */
export function timeLeft(pace: Pace, all: readonly Pace[]): number | null {
  const { budget, pages, runMs, waitedMs, waitMs, pagesLeft, perMinute } = pace
  const lists = all.filter((one) => one === pace || (one.budget === budget && budget !== null))
  const isPaced = pages >= ENOUGH_PAGES
  // How long the other lists are, their first answers say.
  if (!pagesLeft || (perMinute === null && !isPaced) || lists.some((one) => one.pages === 0)) return null
  // They take turns, so a longer one sends no more than this one meanwhile. One that does not say its length is taken for as long.
  const requests = lists.reduce((sum, one) => sum + Math.min(one.pagesLeft ?? pagesLeft, pagesLeft), 0)
  const bySpeed = isPaced ? (Math.max(runMs - waitedMs, 0) / pages) * pagesLeft : 0
  // A minute's requests may leave at once at its beginning: this is wrong by less than a minute.
  const byLimit = perMinute === null ? 0 : (requests / perMinute) * 60_000
  return Math.round(Math.max(bySpeed, byLimit, waitMs))
}
