import { averageOf } from '../../api/rate/decision.ts'
import { counted, grouped, inWords } from '../../text.ts'

/** What limits how fast pages can come. */
export interface Pace {
  /** Our own ceiling. */
  requestsPerMinute: number | null
  /** The limit that the server announced, and our share of it. */
  announcedLimit: number | null
  sharePercent: number
  /** What an answer takes, without waits for the rate limit. */
  msPerPage: number
  /** Answers that this is known from. */
  answers: number
  /** Pages that the other lists with the same budget still need; null for one that has no answer yet. */
  others: readonly (number | null)[]
}

/** A few answers say how fast a server is; a single one may have been slow by chance. */
export const ENOUGH_ANSWERS = 3

/** `4,000 pages, about 67 minutes at 60 a minute` */
export function estimate(pages: number, pace: Pace): string {
  const limit = allowedPerMinute(pace)
  const { others, answers } = pace
  if (limit === null || isSlow(pages, pace)) {
    const basis = answers < ENOUGH_ANSWERS ? 'the first' : `the first ${answers}`
    return `${counted(pages, 'page')}, about ${inWords(pages * pace.msPerPage)} at the speed of ${basis}`
  }
  const ms = (requestsUntilEnd(pages, others) / limit) * 60_000
  const shared = others.length === 0 ? '' : `, shared by ${others.length + 1} lists`
  return `${counted(pages, 'page')}, about ${inWords(ms)} at ${grouped(limit)} a minute${shared}`
}

/**
 * Whether the server is slower than the rate limit: a job asks for its pages one after another. Known after a few answers only.
 */
export function isSlow(pages: number, pace: Pace): boolean {
  const limit = allowedPerMinute(pace)
  if (limit === null || pace.answers < ENOUGH_ANSWERS) return false
  return pages * pace.msPerPage > (requestsUntilEnd(pages, pace.others) / limit) * 60_000
}

/**
 * The requests that a budget sends until a list has its pages. Its lists take turns, so a longer one sends no more than this one
 * meanwhile. One without an answer is taken to be as long.
 */
export function requestsUntilEnd(pages: number, others: readonly (number | null)[]): number {
  return others.reduce((sum: number, other) => sum + Math.min(other ?? pages, pages), pages)
}

/** Requests a minute that we may send; null if nothing is known to limit them. */
export function allowedPerMinute({
  requestsPerMinute,
  announcedLimit,
  sharePercent,
}: Pick<Pace, 'requestsPerMinute' | 'announcedLimit' | 'sharePercent'>): number | null {
  const ceiling = requestsPerMinute === null ? null : averageOf(requestsPerMinute)
  const share =
    announcedLimit === null ? null : Math.max(1, Math.floor((announcedLimit * sharePercent) / 100))
  if (ceiling === null || share === null) return ceiling ?? share
  return Math.min(ceiling, share)
}
