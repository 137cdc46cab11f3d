const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Whole, more than zero, with its unit. */
export const DURATION_PATTERN = /^0*[1-9]\d*(?:ms|s|m|h|d)$/

/** A hundred years: beyond it, times computed from a duration leave the range of a Date. */
export const LONGEST_MS = 36_500 * MILLISECONDS.d

/** The longest wait of a timer of Node; for a longer one it does not wait at all. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** `500ms`, `30s`, `5m`, `24h`, `90d` in milliseconds; null for any other text. */
export function parseDuration(text: string): number | null {
  if (!DURATION_PATTERN.test(text)) return null
  const unit = /[a-z]+$/.exec(text)?.[0]
  if (!isUnit(unit)) return null
  const duration = Number.parseInt(text, 10) * MILLISECONDS[unit]
  return duration <= LONGEST_MS ? duration : null
}

function isUnit(unit: string | undefined): unit is keyof typeof MILLISECONDS {
  return unit !== undefined && Object.hasOwn(MILLISECONDS, unit)
}
