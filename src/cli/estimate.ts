import { averageOf } from '../api/rate/decision.ts'
import { counted, grouped, inWords } from '../text.ts'

/** How fast pages can come, at most, as far as it is known. */
export interface Pace {
  /** Our own ceiling. */
  requestsPerMinute: number | null
  /** What the server announced, and how much of it is ours. */
  announcedLimit: number | null
  sharePercent: number
  /** What the first page took. */
  msPerPage: number
}

/** How long so many pages will take, in words: `4,000 pages, about 67 minutes at 60 a minute`. */
export function estimate(pages: number, pace: Pace): string {
  const limit = allowedPerMinute(pace)
  const msByLimit = limit === null ? 0 : (pages / limit) * 60_000
  const msBySpeed = pages * pace.msPerPage
  // Pages of one job are asked for one after another: a slow server can be the narrower place.
  if (limit === null || msBySpeed > msByLimit) {
    return `${counted(pages, 'page')}, about ${inWords(msBySpeed)} at the speed of the first`
  }
  return `${counted(pages, 'page')}, about ${inWords(msByLimit)} at ${grouped(limit)} a minute`
}

/** Requests a minute that we may send, as far as it is known. */
export function allowedPerMinute({
  requestsPerMinute,
  announcedLimit,
  sharePercent,
}: Omit<Pace, 'msPerPage'>): number | null {
  const ceiling = requestsPerMinute === null ? null : averageOf(requestsPerMinute)
  const share =
    announcedLimit === null ? null : Math.max(1, Math.floor((announcedLimit * sharePercent) / 100))
  if (ceiling === null || share === null) return ceiling ?? share
  return Math.min(ceiling, share)
}
