import type { PageMatch } from '../seen.ts'
import type { Checkpoint, Page } from '../types.ts'
import { readForward } from './forward.ts'
import {
  askFront,
  askSample,
  askSpotCheck,
  beginLookBack,
  beginSamples,
  continueFront,
  continueLookBack,
  finishSpotCheck,
  firstAnchor,
  resumeLookBack,
  SPAN,
  wantsSamples,
} from './look-back.ts'
import { askReread, forwardTo, markUnsettled, mayAskAgain, observeAnswer, withState } from './observe.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { askOverlap, continueOverlap, continueStepBack, finishReread, overlapAt } from './step-back.ts'
import { isSwinging } from './verdict.ts'

/** Returns the checkpoint after an answer: state and next question. Throws BAD_RESPONSE on an endless list. */
export function advance(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const state = observeAnswer(from.state, match.why, page, match)
  const next = answer(rules, { ...from, ask: null, state }, page, match)
  return next.ask ? next : askNext(rules, next)
}

function answer(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  switch (match.why) {
    case 'forward':
      return readForward(rules, from, page, match)
    case 'back':
      return continueStepBack(rules, from, page, match)
    case 'reread':
      return finishReread(rules, from, page, match)
    case 'overlap':
      return continueOverlap(rules, from, page, match)
    case 'look':
      return continueLookBack(from, page, match)
    case 'spot-check':
      return finishSpotCheck(from, page, match)
    case 'front':
      return continueFront(from, page, match)
    case 'sample':
      return beginSamples(from, page, match)
  }
}

/** Adds the next question when no search is in progress; `ask` stays null when the pass has ended. */
function askNext(rules: WalkRules, from: Checkpoint): Checkpoint {
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
