/** What the decision is about. Epoch milliseconds, null for never. */
export interface Publication {
  /** Since when the mirror has news for readers that the published file does not show. */
  newsSince: number | null
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
  { newsSince, publishedAt, attemptedAt }: Publication,
  every: number,
  now: number,
): number | null {
  if (newsSince === null) return null
  // Another worker may have published meanwhile.
  if (publishedAt !== null && publishedAt > newsSince && publishedAt <= now) return null
  const past = [publishedAt, attemptedAt].filter((at): at is number => at !== null && at <= now)
  return Math.max(newsSince, ...past.map((at) => at + every))
}
