import type { Checkpoint } from '../types.ts'
import { askFront, askSpotCheck } from './front.ts'
import { beginLookBack, firstAnchor, resumeLookBack, SPAN } from './look-back.ts'
import { askReread, markUnsettled, mayAskAgain, withState } from './observe.ts'
import { askOverlap, overlapAt } from './overlap.ts'
import { askSample, wantsSamples } from './samples.ts'
import { forwardTo } from './start.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { isSwinging } from './totals.ts'

/** Adds the next question when no search is in progress; `ask` stays null when the pass has ended. */
export function askNext(rules: WalkRules, from: Checkpoint): Checkpoint {
  const { state, nextPage } = from
  if (state.overlap && state.frontier)
    return askOverlap(rules, withState(from, { overlap: overlapAt(state) }), state.frontier.page)
  const isCountable = canCount(rules, state)
  // Asking again would prove nothing, and cost as many requests as the list has pages.
  const isHopeless = isCountable && state.passMoved && isSwinging(state)
  const next = isHopeless ? markUnsettled(from) : isCountable ? askLook(from) : from
  if (next.ask) return next
  if (nextPage !== null) return { ...next, ask: forwardTo(nextPage) }
  return isCountable && !isHopeless ? askAtEnd(next) : next
}

/** Whether the coverage of this walk is judged, and by a total. A list in one answer cannot have moved. */
function canCount({ kind, total }: WalkRules, { counted, passAnswers }: CoverageState): boolean {
  return kind === 'full' && total === 'check' && counted && passAnswers > 1
}

function askLook(from: Checkpoint): Checkpoint {
  const state = watch(from.state)
  const { frontier, anchor, lookBack: look, closed } = state
  const next = { ...from, state }
  const isAtEnd = from.nextPage === null
  if (!frontier || anchor === null || closed.front) return next
  if (look?.waiting) return isAtEnd ? rereadFrontier(next, frontier.page) : next
  if (look) return resumeLookBack(next, look, frontier)
  const isDue = frontier.page - anchor >= SPAN || (isAtEnd && frontier.page > anchor)
  if (!isDue) return next
  if (state.perPage) return beginLookBack(next, frontier, anchor)
  return withState(next, { anchor: frontier.page, unsettled: true })
}

/** Starts to look back once the list has moved. */
function watch(state: CoverageState): CoverageState {
  if (!state.watching && !state.passMoved) return state
  return { ...state, watching: true, anchor: state.anchor ?? firstAnchor(state) }
}

function rereadFrontier(from: Checkpoint, page: number): Checkpoint {
  if (mayAskAgain(from.state)) return askReread(from, page)
  return withState(from, { lookBack: null, anchor: page, unsettled: true })
}

function askAtEnd(from: Checkpoint): Checkpoint {
  const { state } = from
  const { closed, passMoved, passDistinct, passTotal } = state
  if (!passMoved)
    return closed.spotCheck || passDistinct !== passTotal || !mayAskAgain(state) ? from : askSpotCheck(from)
  if (closed.front && !wantsSamples(state)) return from
  const next = closed.front ? askSample(from) : askFront(from, 1)
  // No question: that check is closed, so the next one follows.
  return next.ask ? next : askAtEnd(next)
}
