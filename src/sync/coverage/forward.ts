import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { assertEnds, isBeyondEnd } from './ends.ts'
import { countMovement, markMoved, markUnsettled, readingAfter, riseSince } from './observe.ts'
import { overlapFrom } from './overlap.ts'
import type { CoverageState, ListPosition, WalkRules } from './state.ts'
import { beginStepBack } from './step-back.ts'
import { isSwinging } from './totals.ts'

/**
 * An answer that reads on. What came again is counted against the rise of the total: an item that was added behind the
 * reader pushes one that is known over the boundary. A fall without anything that came again may have pulled an unread
 * item over it the other way, and is followed back.
 */
export function readForward(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { state } = from
  const pagesWithoutNews = match.newToPass > 0 ? 0 : state.pagesWithoutNews + 1
  if (isBeyondEnd(page) && page.number > rules.firstPage)
    return overlapFrom(rules, { ...from, state: markMoved({ ...state, pagesWithoutNews }) }, page)
  assertEnds(rules, { ...state, pagesWithoutNews }, page)
  const { near, far } = repeatsOn(state, match)
  const rise = state.frontier && rules.total === 'check' ? riseSince(state.frontier, page) : 0
  const paid = explainRepeats(
    readingAfter({ ...state, pagesWithoutNews }, page, match),
    near,
    rise,
    pagesWithoutNews > 0,
  )
  const next = countRepeats(paid, near, far, page.items.length - match.entries.length)
  const isFall = near === 0 && rise < 0
  const counted = near === 0 && rise !== 0 ? countMovement(next, isFall ? 'falls' : 'rises') : next
  const read = { ...from, nextPage: page.next, ask: null, state: counted }
  if (!isFall) return read
  return isSwinging(counted) ? markUnsettled(read) : beginStepBack(rules, read, page)
}

/** Known keys at or before the frontier; those beyond it were found when asked for something else, and are read only now. */
function repeatsOn(
  { frontier, recent }: CoverageState,
  { places }: PageMatch,
): { near: number; far: number } {
  const oldest = recent[0] ?? 0
  let near = 0
  let far = 0
  for (const place of places) {
    if (!frontier || !place || isBehind(place, frontier.place)) continue
    if (place.segment >= oldest) near++
    else far++
  }
  return { near, far }
}

/** An item that stands on one page twice has come twice, and no movement will explain it. */
function countRepeats(state: CoverageState, near: number, far: number, twice: number): CoverageState {
  const { relocated, unexplained, passRepeated } = state
  const next = {
    ...state,
    repeatedAcrossPages: state.repeatedAcrossPages || near + far > 0,
    relocated: relocated + far,
    unexplained: unexplained + twice,
    passRepeated: passRepeated + near + far + twice,
  }
  return near + far + twice > 0 ? markMoved(next) : next
}

function isBehind(place: ListPosition, frontier: ListPosition): boolean {
  return (
    place.segment > frontier.segment ||
    (place.segment === frontier.segment && place.position > frontier.position)
  )
}

/**
 * The server counts before it reads, so that a rise may show one answer later than what it pushed. And what is pushed may
 * be more than a page: what of a rise is left on an answer that brings nothing new, below 0 here, pays on the next one.
 */
function explainRepeats(
  state: CoverageState,
  near: number,
  rise: number,
  isAllKnown: boolean,
): CoverageState {
  const { carried } = state
  const late = Math.min(Math.max(carried, 0), Math.max(0, rise - near))
  const left = near - Math.max(0, rise) + Math.min(carried, 0) + late
  const pushes = (left > 0 ? 1 : 0) - (late > 0 ? 1 : 0)
  return {
    ...countMovement(state, 'pushes', pushes),
    unexplained: state.unexplained - late + Math.max(0, left),
    carried: isAllKnown ? left : Math.max(0, left),
  }
}
