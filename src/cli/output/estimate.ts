import { averageOf } from '../../api/rate/decision.ts'
import { counted, grouped, inWords } from '../../text.ts'

/** What limits how fast pages can come. */
export interface Pace {
  /** Our own ceiling. */
  requestsPerMinute: number | null
  /** The limit that the server announced, and our share of it. */
  announcedLimit: number | null
  sharePercent: number
  /** The time that the first page took. */
  msPerPage: number
}

/** `4,000 pages, about 67 minutes at 60 a minute` */
export function estimate(pages: number, pace: Pace): string {
  const limit = allowedPerMinute(pace)
  const msByLimit = limit === null ? 0 : (pages / limit) * 60_000
  const msBySpeed = pages * pace.msPerPage
  // A job asks for its pages one after another, so a slow server can limit it more than the rate limit.
  if (limit === null || msBySpeed > msByLimit) {
    return `${counted(pages, 'page')}, about ${inWords(msBySpeed)} at the speed of the first`
  }
  return `${counted(pages, 'page')}, about ${inWords(msByLimit)} at ${grouped(limit)} a minute`
}

/** Requests a minute that we may send; null if nothing is known to limit them. */
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
