import type { Checkpoint } from '../types.ts'
import { askFront, askSpotCheck } from './front.ts'
import { beginLookBack, firstAnchor, resumeLookBack, SPAN } from './look-back.ts'
import { askReread, markUnsettled, mayAskAgain } from './observe.ts'
import { askOverlap, overlapAt } from './overlap.ts'
import { askSample, wantsSamples } from './samples.ts'
import { forwardTo } from './start.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { isSwinging } from './totals.ts'

/** What to ask for next, when nothing that was asked for is under way any more; nothing when the pass is at its end. */
export function askNext(rules: WalkRules, from: Checkpoint): Checkpoint {
  const { state, nextPage } = from
  if (state.overlap && state.frontier)
    return askOverlap(rules, { ...from, state: { ...state, overlap: overlapAt(state) } }, state.frontier.page)
  const isCountable = canCount(rules, state)
  // Pages asked again would bear out nothing, and cost as many requests as the list has pages.
  const isHopeless = isCountable && state.passMoved && isSwinging(state)
  const next = isHopeless ? markUnsettled(from) : isCountable ? askLook(from) : from
  if (next.ask) return next
  if (nextPage !== null) return { ...next, ask: forwardTo(nextPage) }
  return isCountable && !isHopeless ? askAtEnd(next) : next
}

/** Whether there is something to count by, and somebody who wants to know. */
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
  return { ...next, state: { ...state, anchor: frontier.page, unsettled: true } }
}

/** From the first movement on, old pages are looked back at. */
function watch(state: CoverageState): CoverageState {
  if (!state.watching && !state.passMoved) return state
  return { ...state, watching: true, anchor: state.anchor ?? firstAnchor(state) }
}

function rereadFrontier(from: Checkpoint, page: number): Checkpoint {
  if (mayAskAgain(from.state)) return askReread(from, page)
  return { ...from, state: { ...from.state, lookBack: null, anchor: page, unsettled: true } }
}

function askAtEnd(from: Checkpoint): Checkpoint {
  const { state } = from
  const { closed, passMoved, passDistinct, passTotal } = state
  if (!passMoved)
    return closed.spotCheck || passDistinct !== passTotal || !mayAskAgain(state) ? from : askSpotCheck(from)
  if (closed.front && !wantsSamples(state)) return from
  const next = closed.front ? askSample(from) : askFront(from, 1)
  // Where it could not be asked for, it is closed, and what comes after it is due.
  return next.ask ? next : askAtEnd(next)
}
