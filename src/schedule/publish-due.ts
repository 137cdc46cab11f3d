/** What the decision is about. Epoch milliseconds, null for never. */
export interface Publication {
  /** When the last news came that the published file may not show. */
  newsAt: number | null
  /** Of the published file: the moment that it shows. */
  publishedAt: number | null
  /** When the last attempt began, whatever its end. */
  attemptedAt: number | null
}

/**
 * When the file is to be made again; null: there is no news. At most once in `every` milliseconds, so at the latest so long after the news.
 * A failed attempt counts: a full disk is not tried all the time. A file from the future, after the clock was set back, does not.
 */
export function publishDueAt(
  { newsAt, publishedAt, attemptedAt }: Publication,
  every: number,
  now: number,
): number | null {
  if (newsAt === null) return null
  // Published by another worker, or by a copy that was under way when the news came.
  if (publishedAt !== null && publishedAt > newsAt && publishedAt <= now) return null
  const past = [publishedAt, attemptedAt].filter((at): at is number => at !== null && at <= now)
  return Math.max(newsAt, ...past.map((at) => at + every))
}
