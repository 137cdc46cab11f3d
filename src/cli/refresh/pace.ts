import type { RefreshTurns } from '../../sync/refresh-turns.ts'

/** The share may be used so far ahead, so that a few lists start together. */
export const AT_ONCE_MS = 60_000

/**
 * Spreads refreshes of one process that are due at the same time, as after full walks that began together. Otherwise they use
 * the whole limit for minutes, and two rounds of them use more than the share of an hour.
 */
export function createPace(): RefreshTurns {
  const paces = new Map<string, { begunAt: number; usedUntil: number }>()

  function usedUntil(budget: string, now: number): number {
    const pace = paces.get(budget) ?? { begunAt: now, usedUntil: now }
    const setBack = pace.begunAt - now
    if (setBack > 0) paces.set(budget, { begunAt: now, usedUntil: pace.usedUntil - setBack })
    return Math.max(paces.get(budget)?.usedUntil ?? now, now)
  }

  return {
    most: Number.POSITIVE_INFINITY,
    async take(due, now) {
      const taken = due.filter(({ budget, needs }) => {
        const used = usedUntil(budget, now)
        if (used > now + AT_ONCE_MS) return false
        paces.set(budget, { begunAt: now, usedUntil: used + needs })
        return true
      })
      return {
        taken,
        others: [],
        freeAt: new Map(due.map(({ budget }) => [budget, usedUntil(budget, now) - AT_ONCE_MS])),
      }
    },
  }
}
