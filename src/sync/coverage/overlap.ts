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
import type { CoverageState, Overlap, Question, WalkRules } from './state.ts'

// At which page a walk goes on that was interrupted, or whose list became shorter than where it is.

/** How often the search may jump ahead to where the walk should have stopped. */
const JUMPS = 3

/**
 * Resumes a walk: asks for the last page that it read, then for pages around it, until one holds a known item. So the
 * walk continues at the same item, however far its items moved meanwhile.
 */
export function resumeReading(rules: WalkRules, from: Checkpoint): Checkpoint {
  const { state, nextPage } = from
  const asks = from.ask?.why
  if (nextPage === null || state.frontier === null || asks === 'overlap') return from
  // A step back began before the interruption and must finish first.
  if (asks === 'back' || asks === 'reread') return withState(from, { overlap: overlapAt(state) })
  const at = overlapAt(state)
  const overlapping = { ...state, lookBack: null, overlap: at && { ...at, isFree: true } }
  return askOverlap(rules, { ...from, state: overlapping }, state.frontier.page)
}

/** The list became shorter than this page: continues from its new last page. */
export function overlapFrom(rules: WalkRules, from: Checkpoint, page: Page): Checkpoint {
  const { state } = from
  const last = page.lastPage ?? 0
  const ended = { ...from, nextPage: null, ask: null }
  if (last < rules.firstPage) return withState(ended, { overlap: null })
  return askOverlap(rules, withState(ended, { overlap: overlapAt(state) }), last)
}

export function overlapAt({ frontier }: CoverageState): Overlap | null {
  if (!frontier) return null
  const { place, index, total } = frontier
  return { until: place, index, total, top: null, rose: false, jumps: 0, isFree: false }
}

/** Asks for a page of the overlap in progress, or ends it in front of the first page or when no more may be asked. */
export function askOverlap(rules: WalkRules, from: Checkpoint, page: number): Checkpoint {
  const { state } = from
  const { overlap } = state
  if (!overlap) return { ...from, nextPage: page, ask: null }
  if (page < rules.firstPage) return endOverlap(from)
  if (!overlap.isFree && !mayAskAgain(state))
    return endOverlap({ ...from, state: markMoved({ ...state, unsettled: true }) })
  const before = overlap.top && state.frontier ? state.frontier.place.segment : null
  const ask: Question = { why: 'overlap', page, until: overlap.until, before }
  return { ...from, ask }
}

/** An answer to `overlap`. */
export function continueOverlap(
  rules: WalkRules,
  from: Checkpoint,
  page: Page,
  match: PageMatch,
): Checkpoint {
  const { overlap } = from.state
  if (!overlap) return { ...from, ask: null }
  if (isPastEnd(page)) {
    const moved = { ...from, state: markMoved(from.state) }
    return overlap.top ? searchFromEnd(rules, moved, overlap, page) : overlapFrom(rules, moved, page)
  }
  return overlap.top
    ? searchEarlier(rules, from, overlap, page, match)
    : continueAtTop(rules, from, overlap, page, match)
}

/** The list became shorter again: what the search looks for is on an earlier page, and so is the item that it began with. */
function searchFromEnd(rules: WalkRules, from: Checkpoint, overlap: Overlap, page: Page): Checkpoint {
  const next = withState(from, { overlap: { ...overlap, rose: true, total: page.total } })
  return askOverlap(rules, next, page.lastPage ?? 0)
}

function searchEarlier(
  rules: WalkRules,
  from: Checkpoint,
  overlap: Overlap,
  page: Page,
  { known, previous }: PageMatch,
): Checkpoint {
  const rose = overlap.rose || riseSince(overlap, page) > 0
  // An item of the last page is on an earlier one now.
  const slid = previous.some((place) => place?.segment === overlap.until.segment)
  const repeatedAcrossPages = from.state.repeatedAcrossPages || slid
  const next = withState(from, { repeatedAcrossPages, overlap: { ...overlap, rose, total: page.total } })
  return known ? endOverlap(next) : askOverlap(rules, next, page.number - 1)
}

function continueAtTop(
  rules: WalkRules,
  from: Checkpoint,
  overlap: Overlap,
  page: Page,
  match: PageMatch,
): Checkpoint {
  const { state } = from
  const { known } = match
  if (!known) {
    const top = { page: page.number, next: page.next, total: page.total }
    const read = { ...from, nextPage: page.next, state: markMoved(readingAfter(state, page, match)) }
    const down = withState(read, { overlap: { ...overlap, top, total: page.total } })
    return askOverlap(rules, down, page.number - 1)
  }
  const perPage = state.perPage || match.items.length
  const index = (page.number - 1) * perPage + known.index + known.distance
  const place = Math.min(Math.floor(index / perPage) + 1, page.lastPage ?? Number.POSITIVE_INFINITY)
  if (known.distance > 0 && place > page.number && overlap.jumps < JUMPS)
    return askOverlap(rules, withState(from, { overlap: { ...overlap, jumps: overlap.jumps + 1 } }), place)
  const shift = index - overlap.index
  const unexplained = state.unexplained + Math.max(0, shift - Math.max(0, riseSince(overlap, page)))
  const read = readingAfter({ ...state, unexplained, carried: 0, overlap: null }, page, match)
  const isMoved = shift !== 0 || match.newToPass > 0
  const repeated = state.passRepeated + Math.max(0, shift)
  const repeatedAcrossPages = state.repeatedAcrossPages || shift > 0 || state.frontier?.page !== page.number
  const next = isMoved ? markMoved({ ...read, passRepeated: repeated, repeatedAcrossPages }) : read
  return { ...from, nextPage: page.next, ask: null, state: next }
}

/** If the list moved during the search, reads the top page again: the next page would not show it. */
function endOverlap(from: Checkpoint): Checkpoint {
  const { overlap } = from.state
  const next = withState({ ...from, ask: null }, { overlap: null })
  const { top, rose, total } = overlap ?? {}
  return top && (rose || total !== top.total) ? rereadOrDoubt(next, top.page) : next
}
