import { PER_PAGE } from './price.ts'
import type { Recent } from './state.ts'

// When far more older rows change than usual, the whole list is walked at once.

/** Pages nearer to the newest end say nothing: much happens there. */
const DEEP = 64

const RECENT_PAGES = 30
const LEAST_RECENT_PAGES = 10

/** TIMES as many rows as expected, and MORE beyond that, are no chance. */
const MORE = 12
const TIMES = 2

/** No alarm before a list has been known for KNOWN_MS, nor within AGAIN_MS of the last one. Milliseconds. */
const KNOWN_MS = 43_200_000
const AGAIN_MS = 86_400_000

/** @param elapsed Minutes since the page was read before. */
export function afterDeepPage(
  recent: Recent | undefined,
  { depth, rate, found, elapsed }: { depth: number; rate: number; found: number; elapsed: number },
): Recent {
  const { pages, ...known } = recent ?? { pages: 0, found: 0, expected: 0 }
  if (depth <= DEEP) return { pages, ...known }
  const kept = Math.min(1, (RECENT_PAGES - 1) / Math.max(1, pages))
  const expected = PER_PAGE * -Math.expm1((-rate * elapsed) / PER_PAGE)
  return {
    pages: Math.min(RECENT_PAGES, pages + 1),
    found: known.found * kept + found,
    expected: known.expected * kept + expected,
  }
}

/** Whether far more older rows changed than usual, so that the whole list should be read at once. `since`: when the list became known. */
export function isAlarming(
  recent: Recent,
  since: number,
  alarmedAt: number | undefined,
  now: number,
): boolean {
  const isMore = recent.pages >= LEAST_RECENT_PAGES && recent.found > MORE + TIMES * recent.expected
  return isMore && now - since >= KNOWN_MS && (alarmedAt === undefined || now - alarmedAt >= AGAIN_MS)
}

/** Whether the whole list still has to be read after an alarm: no full walk that began later is complete. */
export function isAlarmed({ alarmedAt, walkAt }: { alarmedAt?: number; walkAt?: number }): boolean {
  return alarmedAt !== undefined && alarmedAt > (walkAt ?? 0)
}
