import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { assertEnds, isBeyondEnd } from './ends.ts'
import { countMovement, markMoved, markUnsettled, readingAfter, riseSince } from './observe.ts'
import { overlapFrom } from './overlap.ts'
import type { CoverageState, ListPosition, WalkRules } from './state.ts'
import { beginStepBack } from './step-back.ts'
import { isSwinging } from './totals.ts'

/**
 * An answer to `forward`. Counts repeated items against the rise of the total: an item added behind the reader pushes
 * a known one onto the next page. After a fall without repeats an unread item may be on an earlier page: steps back.
 */
export function readForward(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { state } = from
  const pagesWithoutNews = match.newToPass > 0 ? 0 : state.pagesWithoutNews + 1
  if (isBeyondEnd(page) && page.number > rules.firstPage)
    return overlapFrom(rules, { ...from, state: markMoved({ ...state, pagesWithoutNews }) }, page)
  assertEnds(rules, { ...state, pagesWithoutNews }, page)
  const { near, far } = repeatsOn(state, match)
  const rise = state.frontier && rules.total === 'check' ? riseSince(state.frontier, page) : 0
  const explained = explainRepeats(readingAfter({ ...state, pagesWithoutNews }, page, match), near, rise)
  const next = countRepeats(explained, near, far, page.items.length - match.entries.length)
  const isFall = near === 0 && rise < 0
  const counted = near === 0 && rise !== 0 ? countMovement(next, isFall ? 'falls' : 'rises') : next
  const read = { ...from, nextPage: page.next, ask: null, state: counted }
  if (!isFall) return read
  return isSwinging(counted) ? markUnsettled(read) : beginStepBack(rules, read, page)
}

/** Counts the known keys at or before the frontier. Those beyond it were found earlier, by asking for another page. */
function repeatsOn({ frontier, recent }: CoverageState, { previous }: PageMatch) {
  const oldest = recent[0] ?? 0
  let near = 0
  let far = 0
  for (const place of previous) {
    if (!frontier || !place || isBehind(place, frontier.place)) continue
    if (place.segment >= oldest) near++
    else far++
  }
  return { near, far }
}

/** `twice`: items listed twice on this page, which no movement explains. */
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

function isBehind(place: ListPosition, other: ListPosition): boolean {
  return place.segment > other.segment || (place.segment === other.segment && place.position > other.position)
}

/**
 * Sets the rise of the total against the repeated items. The server counts before it reads, so a rise may show one
 * answer later than its repeats. Repeats may fill more than a page: the rest of a rise, below 0 in `carried`,
 * explains the next.
 */
function explainRepeats(state: CoverageState, near: number, rise: number): CoverageState {
  const { carried, pagesWithoutNews } = state
  const late = Math.min(Math.max(carried, 0), Math.max(0, rise - near))
  const left = near - Math.max(0, rise) + Math.min(carried, 0) + late
  const pushes = (left > 0 ? 1 : 0) - (late > 0 ? 1 : 0)
  return {
    ...countMovement(state, 'pushes', pushes),
    unexplained: state.unexplained - late + Math.max(0, left),
    carried: pagesWithoutNews > 0 ? left : Math.max(0, left),
  }
}
