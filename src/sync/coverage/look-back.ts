import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { countMovement, frontierAfter, mayAskAgain } from './observe.ts'
import type { CoverageState, Frontier, LookBack } from './state.ts'

/** So many pages lie between a page that is looked back at and the reader. */
export const SPAN = 64

/** So often a look back begins anew from its old page, and so often the list may move under it. */
const ROUNDS = 4
const FAILS = 12

/**
 * The page that is looked back at first, wherever the list was first seen to move: something may have moved before that
 * without a sign. The boundaries before it are repeatedAcrossPages too soon for much to happen.
 */
export function firstAnchor({ lastPage }: Pick<CoverageState, 'lastPage'>): number {
  return Math.min(SPAN, Math.ceil(lastPage / 2))
}

/**
 * Whether two keys that were read stand as far from each other as the ledger says is asked of the list from time to time:
 * where more items stand between them, one has come there unseen, in the place of one that went.
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
  return probe({ ...from, state: { ...from.state, lookBack: look } }, look, anchor)
}

/** Goes on after the frontier was seen anew. */
export function resumeLookBack(from: Checkpoint, look: LookBack, frontier: Frontier): Checkpoint {
  return probe(from, { ...look, frontier }, look.left === null ? look.anchor : middle(look))
}

function middle({ low, high }: LookBack): number {
  return Math.floor((low + high + 1) / 2)
}

function probe(from: Checkpoint, look: LookBack, page: number): Checkpoint {
  const { state } = from
  const asked = { ...state, lookBack: look }
  if (!mayAskAgain(state)) return giveUp({ ...from, state: asked }, look)
  return { ...from, ask: { why: 'look', page, until: look.frontier.place, before: null }, state: asked }
}

/** An answer of a look back. What is new on it is found, whatever the distances say. */
export function continueLookBack(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const look = from.state.lookBack
  if (!look) return { ...from, ask: null }
  const { newToPass: found } = match
  const next = { ...from, state: takeIn(from.state, look, page, match) }
  const more = page.total === look.frontier.total ? listedMore(from.state, look, page, match) : null
  return more === null ? waitForFrontier(next, look) : narrow(next, look, page.number, more, found)
}

/** What is found counts for what it was looked for; and the old page of one sample is the frontier of the next. */
function takeIn(state: CoverageState, look: LookBack, page: Page, match: PageMatch): CoverageState {
  const { newToPass: found } = match
  if (state.sample === null) return countFound({ ...state, foundBehind: state.foundBehind + found }, match)
  const sample = look.left === null ? frontierAfter(state.sample, state, page, match) : state.sample
  return { ...state, found: state.found + found, sample }
}

function countFound(state: CoverageState, match: PageMatch): CoverageState {
  const { newToPass: found } = match
  if (found > 1) return countMovement(state, 'together', found)
  return isSkip(state, match) ? countMovement(state, 'skips') : state
}

/** Whether one item was found, and between two answers: what was put in stands anywhere. */
function isSkip({ perPage }: CoverageState, { newToPass, places, placed }: PageMatch): boolean {
  const place = placed[places.indexOf(null)]
  if (newToPass !== 1 || !place || !perPage) return false
  return (Math.floor(place.position) + 1) % perPage === 0
}

/** How many more items are listed behind this page, up to the frontier, than the ledger knows; null where no key tells. */
function listedMore(
  { perPage }: CoverageState,
  { frontier }: LookBack,
  page: Page,
  { known, places }: PageMatch,
): number | null {
  if (!known || !perPage) return null
  const index = (page.number - 1) * perPage + known.entry
  const foundBehind = places.filter((place, entry) => entry > known.entry && place === null).length
  return frontier.index - index - known.distance - foundBehind
}

function narrow(from: Checkpoint, look: LookBack, page: number, more: number, found: number): Checkpoint {
  if (look.left === null)
    return more <= 0
      ? agree(from, look)
      : halve(from, {
          ...look,
          upTo: look.frontier.page,
          low: page,
          high: look.frontier.page - 1,
          left: more,
        })
  const left = look.left - found
  if (left <= 0) return agree(from, look)
  return halve(from, more > 0 ? { ...look, left, low: page } : { ...look, left, high: page - 1 })
}

function halve(from: Checkpoint, look: LookBack): Checkpoint {
  if (look.low < look.high) return probe(from, look, middle(look))
  if (look.rounds >= ROUNDS) return giveUp(from, look)
  // What was not found may never have been there: the list may have slid since its frontier was seen.
  return waitForFrontier(from, { ...look, left: null, rounds: look.rounds + 1, fails: look.fails - 1 })
}

/** The list moved under the look back. It goes on where it is, as soon as the frontier was seen anew. */
function waitForFrontier(from: Checkpoint, look: LookBack): Checkpoint {
  if (from.state.sample) return agree(from, look)
  const fails = look.fails + 1
  if (fails > FAILS) return giveUp(from, look)
  return { ...from, ask: null, state: { ...from.state, lookBack: { ...look, fails, waiting: true } } }
}

function agree(from: Checkpoint, { upTo }: LookBack): Checkpoint {
  const { state } = from
  const anchor = state.sample ? state.anchor : upTo
  return { ...from, ask: null, state: { ...state, lookBack: null, anchor } }
}

function giveUp(from: Checkpoint, look: LookBack): Checkpoint {
  const agreed = agree(from, look)
  return from.state.sample ? agreed : { ...agreed, state: { ...agreed.state, unsettled: true } }
}
