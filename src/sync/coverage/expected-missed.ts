import type { Coverage } from '../types.ts'
import { firstAnchor, SPAN } from './look-back.ts'
import type { CoverageState, Movement } from './state.ts'

/**
 * How many items a walk of this length misses on average if its list moves as this one did. 0 if steady; null if
 * drifted, or if nothing was counted.
 */
export function expectedMissed(coverage: Coverage | null, state: CoverageState): number | null {
  if (coverage === 'steady') return 0
  if (coverage !== 'repaired' || state.movement === null) return null
  const { newToWalk } = state.movement
  // Earlier passes saw nearly all that this one missed: as large a part as of what this one saw.
  const share = state.passDistinct > 0 ? newToWalk / state.passDistinct : 0
  // Differences of nearly equal floats: what is below one in a billion is rounding, also below 0.
  const missed = Math.max(0, missedInPass(state, state.movement) * share)
  return missed < 1e-9 ? 0 : Number(missed.toPrecision(3))
}

/**
 * An item is skipped unnoticed if one behind the reader is deleted and, before the next answer, another one is added
 * ahead (the total stays), or pushes it away from where a step back looks. Looks back find it, unless none reaches so
 * far back, or an item between the two ends of the look left as well, so that the distances agree.
 */
function missedInPass(state: CoverageState, movement: Movement): number {
  const rates = ratesOf(state, movement)
  const { pages, watched, window } = spansOf(state)
  const before = 1 - watched / pages
  const { anywhere, pulled, hiding } = rates
  const early = (pulled - anywhere / 2) * before + (anywhere / 2) * before ** 2
  // Items leave from between the ends of a look, which are half a window apart on average.
  const gone = (anywhere * window) / 2 / pages
  const moved = (2 * rates.pushed * window) / 2 / pages
  const isOwn = gone + pulled > 0 ? gone / (gone + pulled) : 0
  const stays = 1 - (1 - isOwn) * Math.exp((-(gone + moved) * window) / watched)
  const skipped = Math.max(0, pulled - early) * hiding
  // Weighted mean of two estimates: by movement (1), and found plus still hidden (2).
  const found = Math.max(0, movement.skips - state.relocated)
  const hidden = (skipped * (1 + 2 * stays) + 2 * found) / 3
  return hidden * stays + early * hiding + ofGroups(state, movement, window / pages, before)
}

/**
 * Items skipped together, when many left at once: a look finds as many as the distances differ, so as many fewer as
 * left from between its ends. Those stay missed if they are on the page next to the others. Where no look reaches,
 * all stay.
 */
function ofGroups({ perPage }: CoverageState, { together }: Movement, gone: number, before: number): number {
  if (!perPage) return 0
  return together * (gone / perPage + before ** 2 / (1 - before ** 2))
}

/** The movements of a pass, corrected for hidden ones; `hiding`: those in each gap that can hide a skip. */
function ratesOf({ passAnswers, askedAgain }: CoverageState, { rises, falls, pulled, pushes }: Movement) {
  const gaps = Math.max(1, passAnswers - askedAgain)
  // A second movement in the same gap may stay unseen: half of a gap that showed one was open to others.
  const more = gaps / Math.max(1, gaps - (rises + falls + pushes) / 2)
  return {
    pulled: pulled * more,
    // Deletions anywhere: half of the falls are ahead of the reader. Only behind: the front of the list is deleted.
    anywhere: Math.min(falls, 2 * (falls - pulled)) * more,
    pushed: pushes * more,
    hiding: ((rises + pushes) * more) / gaps,
  }
}

/** Pages of the list, those that looks back cover, and those between two looks. */
function spansOf(state: CoverageState) {
  const pages = Math.max(2, state.lastPage)
  const watched = pages - firstAnchor({ lastPage: pages })
  return { pages, watched, window: Math.min(SPAN, watched) }
}
