/**
 * Spreads refreshes that are due at the same time, as after full walks that began together. Otherwise they use the whole limit for
 * minutes, and two rounds of them use more than the share of an hour.
 */
export interface Pace {
  /** When the share of a budget has room for another refresh. Epoch milliseconds. */
  freeAt(budget: string): number
  /** Notes that a refresh begins, for which the share needs so many milliseconds. */
  begin(budget: string, needs: number, now: number): void
}

/** The share may be used so far ahead, so that a few lists start together. */
const AT_ONCE_MS = 60_000

export function createPace(): Pace {
  const usedUntil = new Map<string, number>()
  return {
    freeAt: (budget) => (usedUntil.get(budget) ?? 0) - AT_ONCE_MS,
    begin(budget, needs, now) {
      // `usedUntil` is later than that only if the clock was set back.
      const used = Math.min(usedUntil.get(budget) ?? 0, now + AT_ONCE_MS)
      usedUntil.set(budget, Math.max(used, now) + needs)
    },
  }
}
