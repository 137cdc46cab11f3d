import type { PageMatch } from '../seen.ts'
import type { Checkpoint, Page } from '../types.ts'
import {
  isPastEnd,
  markMoved,
  mayAskAgain,
  readingAfter,
  rereadOrDoubt,
  riseSince,
  withState,
} from './observe.ts'
import { continueOverlap, overlapAt, overlapFrom } from './overlap.ts'
import type { StepBack, WalkRules } from './state.ts'

/**
 * The total fell and no item was repeated: an item may have left the pages already read and pulled an unread one onto
 * them. Asks for the pages before, until one holds an item that was known before.
 */
export function beginStepBack(rules: WalkRules, read: Checkpoint, page: Page): Checkpoint {
  const stepBack: StepBack = { page: page.number, total: page.total, rose: false }
  return stepFurther(rules, withState(read, { stepBack }), page.number)
}

/** An answer to `back`. */
export function continueStepBack(
  rules: WalkRules,
  from: Checkpoint,
  page: Page,
  match: PageMatch,
): Checkpoint {
  const back = from.state.stepBack
  if (!back) return { ...from, ask: null }
  const rose = back.rose || riseSince(back, page) > 0
  const state = { ...from.state, stepBack: { ...back, rose, total: page.total } }
  const segment = state.frontier?.place.segment ?? 0
  // Items that the step itself found share the segment of the page where it began, so they do not count as known.
  const isJoined = match.previous.some((place) => place !== null && place.segment < segment)
  const next = { ...from, state }
  return isJoined ? endStepBack(next) : stepFurther(rules, next, page.number)
}

function stepFurther(rules: WalkRules, from: Checkpoint, page: number): Checkpoint {
  const { state } = from
  if (page <= rules.firstPage) return endStepBack(from)
  if (!mayAskAgain(state)) return withState(from, { stepBack: null, unsettled: true })
  const before = state.frontier?.place.segment ?? null
  const earlier = Math.min(page - 1, state.lastPage)
  return { ...from, ask: { why: 'back', page: Math.max(earlier, rules.firstPage), until: null, before } }
}

/**
 * Ends the step. If the total changed meanwhile, unread items may have slid onto the page where the step began, so it is read again. The
 * next page may not show that fall: as many items may have come since.
 */
function endStepBack(from: Checkpoint): Checkpoint {
  const { state } = from
  const { stepBack: back, frontier } = state
  const ended = withState(from, { stepBack: null })
  const changed = frontier?.page === back?.page && frontier?.total !== back?.total
  return back && (back.rose || changed) ? rereadOrDoubt(ended, back.page) : ended
}

/**
 * An answer to `reread`: continues after it, or from the new end if the list became shorter than this page. If it holds no known item, the
 * items that it held are on an earlier page now, and unread ones may have slid there with them.
 */
export function finishReread(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { state } = from
  if (isPastEnd(page)) return overlapFrom(rules, { ...from, state: markMoved(state) }, page)
  const isSlid = match.previous.every((place) => place === null)
  if (isSlid && state.frontier)
    return continueOverlap(rules, withState(from, { overlap: overlapAt(state) }), page, match)
  return { ...from, nextPage: page.next, ask: null, state: readingAfter(state, page, match) }
}
