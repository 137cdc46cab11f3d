/** What decides whether the published file is made again. All times are epoch milliseconds. */
export interface Publication {
  mirror: Shown
  /** Of the file and NAME.json beside it; null: there is no file, or what stands beside it is not about it. */
  published: Shown | null
  /** The file that stands there; null: none, or nothing says when it was made. */
  made: Making | null
  /** When NAME.json was written. */
  toldAt: number | null
  /** The last attempt of this process, if it did not succeed. */
  failed: Making | null
}

/** Texts that are equal where what they stand for is. */
export interface Shown {
  /** Rows, history, columns, coverage. */
  contents: string
  freshness: string
}

export interface Making {
  /** When it began. */
  at: number
  tookMs: number
}

/** The file with NAME.json, or NAME.json alone. */
export interface NextPublication {
  what: 'file' | 'numbers'
  at: number
}

/** The file shows `as_of`, too: that it is older in there than in truth, is said no longer than this. */
const OLDEST_MS = 86_400_000

/** NAME.json costs next to nothing. */
const NUMBERS_EVERY_MS = 60_000

/** Making the file takes no more than one part in so many of the time. */
const PARTS = 10

/**
 * What is written next, and when; null: nothing, until the mirror changes. `every`: the file is made once in so many milliseconds, at
 * most; null: at once, for the end of a command. A time that the clock has not reached, after it was set back, holds nothing up.
 */
export function nextPublication(
  { mirror, published, made, toldAt, failed }: Publication,
  every: number | null,
  now: number,
): NextPublication | null {
  const isSame = published?.contents === mirror.contents
  if (isSame && published.freshness === mirror.freshness) return null
  const isYoung = made !== null && made.at <= now && now - made.at < OLDEST_MS
  const what = isSame && isYoung ? 'numbers' : 'file'
  if (every === null) return { what, at: now }
  const after = (making: Making | null) =>
    making === null || making.at > now ? now : making.at + Math.max(every, making.tookMs * PARTS)
  const told = toldAt === null || toldAt > now ? now : toldAt + Math.min(every, NUMBERS_EVERY_MS)
  return { what, at: Math.max(what === 'file' ? after(made) : told, after(failed)) }
}
