import { JobError } from '../../errors.ts'
import { counted, grouped } from '../../text.ts'
import type { PageMatch } from '../seen.ts'
import type { Checkpoint, Page } from '../types.ts'
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
import {
  askReread,
  forwardTo,
  isPastEnd,
  markMoved,
  markUnsettled,
  mayAskAgain,
  observeAnswer,
  readingAfter,
  riseSince,
  withState,
} from './observe.ts'
import { askOverlap, continueOverlap, overlapAt, overlapFrom } from './overlap.ts'
import type { CoverageState, ListPosition, WalkRules } from './state.ts'
import { beginStepBack, continueStepBack, finishReread } from './step-back.ts'
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

/**
 * An answer to `forward`. Counts repeated items against the rise of the total: an item added behind the reader pushes
 * a known one onto the next page. After a fall without repeats an unread item may be on an earlier page: steps back.
 */
function readForward(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const { state } = from
  const pagesWithoutNews = match.newToPass > 0 ? 0 : state.pagesWithoutNews + 1
  if (isPastEnd(page) && page.number > rules.firstPage)
    return overlapFrom(rules, { ...from, state: markMoved({ ...state, pagesWithoutNews }) }, page)
  assertEnds(rules, { ...state, pagesWithoutNews }, page)
  const { near, far } = repeatsOn(state, match)
  const rise = state.frontier && rules.total === 'check' ? riseSince(state.frontier, page) : 0
  const explained = explainRepeats(readingAfter({ ...state, pagesWithoutNews }, page, match), near, rise)
  const next = countRepeats(explained, near, far, page.items.length - match.items.length)
  const isFall = near === 0 && rise < 0
  const read = { ...from, nextPage: page.next, ask: null, state: next }
  if (!isFall) return read
  return isSwinging(next) ? markUnsettled(read) : beginStepBack(rules, read, page)
}

/** Counts the known items at or before the frontier. Those beyond it were found earlier, by asking for another page. */
function repeatsOn({ frontier, recent }: CoverageState, { previous }: PageMatch) {
  const oldest = recent[0] ?? 0
  let near = 0
  let far = 0
  for (const place of previous) {
    if (!frontier || !place || isAfter(place, frontier.place)) continue
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

function isAfter(place: ListPosition, other: ListPosition): boolean {
  return place.segment > other.segment || (place.segment === other.segment && place.position > other.position)
}

/**
 * Sets the rise of the total against the repeated items. The server counts before it reads, so a rise may show one
 * answer later than its repeats: these are carried on (above 0). Repeats may fill more than a page, so what is left of a rise is carried on
 * as well (below 0), and explains the next ones.
 */
function explainRepeats(state: CoverageState, near: number, rise: number): CoverageState {
  const { carried, pagesWithoutNews } = state
  const late = Math.min(Math.max(carried, 0), Math.max(0, rise - near))
  const left = near - Math.max(0, rise) + Math.min(carried, 0) + late
  return {
    ...state,
    unexplained: state.unexplained - late + Math.max(0, left),
    carried: pagesWithoutNews > 0 ? left : Math.max(0, left),
  }
}

/** A list that grew beyond this never ends. Small lists may grow a lot while they are read. */
const GROWTH = 2
const GROWTH_PAGES = 1000

/** This many pages in a row without a new item are a circle. */
const CIRCLE_PAGES = 1000

/**
 * Pages without news until a list that names its last page is endless, if the latest one is empty or beyond that
 * page. Rows deleted between the server's two queries leave one page empty, a late replica a few. An API that counts
 * items but hides them leaves any number: `total: ignore` allows these.
 */
const FALSE_PAGES = 10

/** The same for empty pages of a list that names no last page: an API that filters after paging leaves some pages empty. */
const EMPTY_PAGES = 100

/** Throws BAD_RESPONSE on an endless list. */
function assertEnds(
  { total }: WalkRules,
  { firstLastPage, pagesWithoutNews }: CoverageState,
  page: Page,
): void {
  if (page.next === null) return
  if (firstLastPage !== null && page.number > firstLastPage * GROWTH + GROWTH_PAGES) {
    const was = counted(firstLastPage, 'page')
    throw endless(`it had ${was} at first, and page ${grouped(page.number)} names a next one`)
  }
  if (pagesWithoutNews >= CIRCLE_PAGES)
    throw endless(`the last ${counted(CIRCLE_PAGES, 'page')} brought nothing new`)
  const isEmpty = page.items.length === 0 && total === 'check'
  if (pagesWithoutNews >= EMPTY_PAGES && isEmpty && page.lastPage === null)
    throw endless(
      `the last ${counted(EMPTY_PAGES, 'page')} brought nothing new, and page ${grouped(page.number)} has no items and names a ` +
        'next one; if the API leaves so many pages empty, set total: ignore',
    )
  if (
    pagesWithoutNews >= FALSE_PAGES &&
    page.lastPage !== null &&
    isPastOrEmpty(total, page, page.lastPage)
  ) {
    throw endless(
      `page ${grouped(page.number)} of ${grouped(page.lastPage)} names a next one, and the last ${counted(FALSE_PAGES, 'page')} ` +
        `brought nothing new${total === 'check' ? '; if the API counts items that it does not list, set total: ignore' : ''}`,
    )
  }
}

function isPastOrEmpty(total: WalkRules['total'], { number, items }: Page, lastPage: number): boolean {
  return number > lastPage || (items.length === 0 && total === 'check')
}

function endless(why: string): JobError {
  return new JobError('BAD_RESPONSE', `the list does not end: ${why}`)
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
