import type { PageMatch } from '../seen.ts'
import type { Checkpoint, Page } from '../types.ts'
import { frontierAfter, markMoved, markUnsettled, mayAskAgain, riseSince, withState } from './observe.ts'
import type { CoverageState, Frontier, ListPosition, LookBack } from './state.ts'

/** Pages between an old page and the reader when the walk looks back. */
export const SPAN = 64

/** How often a look back may start again from its old page, and how often the list may move during it. */
const ROUNDS = 4
const FAILS = 12

/**
 * The first page to look back at, wherever the list was first seen to move: it may have moved unnoticed before. Pages
 * before it are read too early in a walk for much to happen.
 */
export function firstAnchor({ lastPage }: Pick<CoverageState, 'lastPage'>): number {
  return Math.min(SPAN, Math.ceil(lastPage / 2))
}

/**
 * Starts to compare the distance from an old page to the frontier with the ledger's. If the list has more items
 * between them, one of those was skipped: it slid past the reader while another one left.
 */
export function beginLookBack(from: Checkpoint, frontier: Frontier, anchor: number): Checkpoint {
  const look: LookBack = {
    frontier,
    anchor,
    upTo: frontier.page,
    low: anchor,
    high: frontier.page - 1,
    left: null,
    rounds: 1,
    fails: 0,
    waiting: false,
  }
  return askOldPage(from, look, anchor)
}

/** Continues with a new frontier. */
export function resumeLookBack(from: Checkpoint, look: LookBack, frontier: Frontier): Checkpoint {
  return askOldPage(from, { ...look, frontier }, look.left === null ? look.anchor : middle(look))
}

function middle({ low, high }: LookBack): number {
  return Math.floor((low + high + 1) / 2)
}

function askOldPage(from: Checkpoint, look: LookBack, page: number): Checkpoint {
  const next = withState(from, { lookBack: look })
  if (!mayAskAgain(next.state)) return giveUp(next, look)
  return { ...next, ask: { why: 'look', page, until: look.frontier.place, before: null } }
}

/** An answer to `look`. New items on it count as found, whatever the distances say. */
export function continueLookBack(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const look = from.state.lookBack
  if (!look) return { ...from, ask: null }
  const { newToPass: found } = match
  const next = { ...from, state: countFinds(from.state, look, page, match) }
  const more = page.total === look.frontier.total ? listedMore(from.state, look, page, match) : null
  return more === null ? waitForFrontier(next, look) : narrow(next, look, page.number, more, found)
}

/** Counts what was found: by a look back, or by a sample. The old page of a sample is the frontier of the next one. */
function countFinds(state: CoverageState, look: LookBack, page: Page, match: PageMatch): CoverageState {
  const { newToPass: found } = match
  if (state.sample === null) return { ...state, foundBehind: state.foundBehind + found }
  const sample = look.left === null ? frontierAfter(state.sample, state, page, match) : state.sample
  return { ...state, found: state.found + found, sample }
}

/** How many items more than the ledger the list has, from here to the frontier; null: no item of the page is known. */
function listedMore(
  { perPage }: CoverageState,
  { frontier }: LookBack,
  page: Page,
  { known, previous }: PageMatch,
): number | null {
  if (!known || !perPage) return null
  const index = (page.number - 1) * perPage + known.index
  const foundAfter = previous.filter((place, at) => at > known.index && place === null).length
  return frontier.index - index - known.distance - foundAfter
}

function narrow(from: Checkpoint, look: LookBack, page: number, more: number, found: number): Checkpoint {
  const upTo = look.frontier.page
  if (look.left === null)
    return more <= 0
      ? endLook(from, look)
      : halve(from, { ...look, upTo, low: page, high: upTo - 1, left: more })
  const left = look.left - found
  if (left <= 0) return endLook(from, look)
  return halve(from, more > 0 ? { ...look, left, low: page } : { ...look, left, high: page - 1 })
}

function halve(from: Checkpoint, look: LookBack): Checkpoint {
  if (look.low < look.high) return askOldPage(from, look, middle(look))
  if (look.rounds >= ROUNDS) return giveUp(from, look)
  // Perhaps nothing was missed: the list may have slid since the frontier was read. `waitForFrontier` counts a failure, and this is none.
  return waitForFrontier(from, { ...look, left: null, rounds: look.rounds + 1, fails: look.fails - 1 })
}

/** The list moved during the look back: it continues after the next page in list order. */
function waitForFrontier(from: Checkpoint, look: LookBack): Checkpoint {
  if (from.state.sample) return endLook(from, look)
  const fails = look.fails + 1
  if (fails > FAILS) return giveUp(from, look)
  return withState(from, { lookBack: { ...look, fails, waiting: true } })
}

function endLook(from: Checkpoint, { upTo }: LookBack): Checkpoint {
  const { sample, anchor } = from.state
  return withState(from, { lookBack: null, anchor: sample ? anchor : upTo })
}

function giveUp(from: Checkpoint, look: LookBack): Checkpoint {
  const ended = endLook(from, look)
  return from.state.sample ? ended : markUnsettled(ended)
}

/** Pages between two samples. */
const APART = 40

/** Whether there are unexplained repeats that insertions behind the reader may explain. */
export function wantsSamples({
  closed,
  unexplained,
  found,
  relocated,
  unsettled,
  perPage,
}: CoverageState): boolean {
  return !closed.samples && unexplained > found && relocated === 0 && !unsettled && (perPage ?? 0) > 0
}

/**
 * Asks for one page in forty, from the middle of the list to its front, where most insertions are behind the reader.
 * Looks back from each sample to the next, until enough items are found.
 */
export function askSample(from: Checkpoint): Checkpoint {
  const { state } = from
  const { sample } = state
  if (!mayAskAgain(state) || (sample && sample.page <= 1)) return closeSamples(from)
  if (sample) return beginLookBack(from, sample, Math.max(1, sample.page - APART))
  const page = Math.max(1, Math.ceil(state.lastPage / 2))
  return { ...from, ask: { why: 'sample', page, until: null, before: null } }
}

/** An answer to `sample`, the first one. */
export function beginSamples(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const state = { ...from.state, found: from.state.found + match.newToPass }
  const sample: Frontier | null = frontierAfter(null, state, page, match)
  const next = { ...from, state: { ...state, sample } }
  return sample ? next : closeSamples(next)
}

function closeSamples(from: Checkpoint): Checkpoint {
  return withState(from, { closed: { ...from.state.closed, samples: true } })
}

/** The page of the spot check, as a share of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37

/** Asks for one page of a list that never moved. */
export function askSpotCheck(from: Checkpoint): Checkpoint {
  const page = Math.max(1, Math.round(SPOT * from.state.lastPage))
  return { ...from, ask: { why: 'spot-check', page, until: null, before: null } }
}

/** An answer to `spot-check`: if items or their order differ and the total does not, items left and came unnoticed. */
export function finishSpotCheck(from: Checkpoint, page: Page, { previous }: PageMatch): Checkpoint {
  const state = { ...from.state, closed: { ...from.state.closed, spotCheck: true } }
  const [first] = previous
  const isSame = previous.every(
    (place, index) => place?.segment === first?.segment && place?.position === index,
  )
  const isExplained = riseSince(state.frontier, page) !== 0
  return { ...from, state: isSame || isExplained ? state : { ...markMoved(state), unsettled: true } }
}

/** Looks for items added in front of the list since its first page was read. */
export function askFront(from: Checkpoint, page: number): Checkpoint {
  const { state } = from
  if (!mayAskAgain(state)) return closeFront(from)
  return { ...from, ask: { why: 'front', page, until: null, before: state.firstSegment } }
}

/**
 * An answer to `front`: where two items are neighbours as before, none after them was added in front. Compares the
 * last three items, since a page boundary may have been between two of them.
 */
export function continueFront(from: Checkpoint, page: Page, { previous, newToPass }: PageMatch): Checkpoint {
  const state = { ...from.state, found: from.state.found + newToPass }
  const next = { ...from, state }
  const last = previous.slice(-3)
  const isOver = page.next === null || page.number >= (state.frontier?.page ?? 0)
  return isOver || last.some((place, index) => areNeighbours(last[index - 1], place))
    ? closeFront(next)
    : askFront(next, page.number + 1)
}

/** Items at a fractional position were found later and do not count: they are neighbours of whatever they were found with. */
function areNeighbours(
  before: ListPosition | null | undefined,
  last: ListPosition | null | undefined,
): boolean {
  if (!before || !last || !Number.isInteger(last.position)) return false
  return before.segment === last.segment && before.position + 1 === last.position
}

function closeFront(from: Checkpoint): Checkpoint {
  return withState(from, { closed: { ...from.state.closed, front: true } })
}
