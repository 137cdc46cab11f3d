/** Clocks of the processes on a mirror may differ by this much. */
const TOLERANCE_MS = 60_000

/**
 * Whether a time is in the future: the clock that it was taken from was ahead, so it says nothing of how fresh a list is, or what is due.
 * `time`: ISO 8601 or epoch milliseconds; null: none is known. `now`: epoch milliseconds.
 */
export function isAhead(time: string | number | null, now: number): boolean {
  const ms = typeof time === 'string' ? Date.parse(time) : time
  return ms !== null && ms > now + TOLERANCE_MS
}
