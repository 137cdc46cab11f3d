import type { Coverage } from '../types.ts'
import { firstAnchor, SPAN } from './look-back.ts'
import type { CoverageState, Movement } from './state.ts'

/**
 * How many items a walk of this length misses on average, of a list that moved as this one was seen to move. 0 where it
 * is steady; null where it is drifted, or there is nothing to tell it by.
 */
export function expectedMissed(coverage: Coverage | null, state: CoverageState): number | null {
  if (coverage === 'steady') return 0
  if (coverage !== 'repaired' || state.movement === null) return null
  const { newToWalk } = state.movement
  // What this pass missed, the passes before it have nearly always seen: as nearly as all that this one saw.
  const share = state.passDistinct > 0 ? newToWalk / state.passDistinct : 0
  return Number((missedInPass(state, state.movement) * share).toPrecision(3))
}

/**
 * An item is skipped without a sign where one behind the reader is deleted and, before the next answer, something else
 * is added ahead (the total stays), or pushes it back from where a step back looks for it. Looks back find it, but for
 * two cases: no look reaches back to there, or an item between the look's two ends went as well, and the counts agree.
 */
function missedInPass(state: CoverageState, movement: Movement): number {
  const rates = ratesOf(state, movement)
  const { pages, watched, window } = spansOf(state)
  const before = 1 - watched / pages
  const { anywhere, pulled, hiding } = rates
  const early = (pulled - anywhere / 2) * before + (anywhere / 2) * before ** 2
  // Items go from between the ends of a look, which lie half a window apart on average.
  const gone = (anywhere * window) / 2 / pages
  const moved = (2 * rates.pushed * window) / 2 / pages
  const isOwn = gone + pulled > 0 ? gone / (gone + pulled) : 0
  const stays = 1 - (1 - isOwn) * Math.exp((-(gone + moved) * window) / watched)
  const skipped = Math.max(0, pulled - early) * hiding
  // The movement tells how many were skipped, and so do those that were found; these count twice, since more may hide one.
  const found = Math.max(0, movement.skips - state.relocated)
  const hidden = (skipped * (1 + 2 * stays) + 2 * found) / 3
  return hidden * stays + early * hiding + ofGroups(state, movement, window / pages, before)
}

/**
 * Of items that are skipped together, as anywhere in the list many go at one stroke, a look finds as many as its counts
 * are apart: fewer by those that went from between its ends. The last ones stay, where they stand on the page next to the
 * one with the others. Where no look reaches back to, all stay.
 */
function ofGroups({ perPage }: CoverageState, { together }: Movement, gone: number, before: number): number {
  if (!perPage) return 0
  return together * (gone / perPage + before ** 2 / (1 - before ** 2))
}

/** The movements of a pass as if none had hidden another; those that hide a skip in each gap between two answers. */
function ratesOf({ passAnswers, askedAgain }: CoverageState, { rises, falls, pulled, pushes }: Movement) {
  const gaps = Math.max(1, passAnswers - askedAgain)
  // A movement that meets another one in its gap may not be seen: of a gap that showed one, half of it was left for others.
  const more = gaps / Math.max(1, gaps - (rises + falls + pushes) / 2)
  return {
    pulled: pulled * more,
    // Where an item is deleted anywhere, half of the falls are ahead of the reader; where all are behind, it is at the front.
    anywhere: Math.min(falls, 2 * (falls - pulled)) * more,
    pushed: pushes * more,
    hiding: ((rises + pushes) * more) / gaps,
  }
}

/** Pages of the list, those of them that are looked back at, and those that lie between two looks. */
function spansOf(state: CoverageState) {
  const pages = Math.max(2, state.lastPage)
  const watched = pages - firstAnchor({ lastPage: pages })
  return { pages, watched, window: Math.min(SPAN, watched) }
}
