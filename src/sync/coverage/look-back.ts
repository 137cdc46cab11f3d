import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { counting, edgeAfter, mayAskAgain } from './observe.ts'
import type { CoverageState, Edge, LookBack } from './state.ts'

/** So many pages lie between a page that is looked back at and the reader. */
export const SPAN = 64

/** So often a look back begins anew from its old page, and so often the list may move under it. */
const ROUNDS = 4
const FAILS = 12

/**
 * The page that is looked back at first, wherever the list was first seen to move: something may have moved before that
 * without a sign. The boundaries before it are crossed too soon for much to happen.
 */
export function firstAnchor({ lastPage }: Pick<CoverageState, 'lastPage'>): number {
  return Math.min(SPAN, Math.ceil(lastPage / 2))
}

/**
 * Whether two keys that were read stand as far from each other as the ledger says is asked of the list from time to time:
 * where more items stand between them, one has come there unseen, in the place of one that went.
 */
export function lookBack(from: Checkpoint, edge: Edge, anchor: number): Checkpoint {
  const look: LookBack = {
    edge,
    anchor,
    upTo: edge.page,
    low: anchor,
    high: edge.page - 1,
    left: null,
    rounds: 1,
    fails: 0,
    waiting: false,
  }
  return probe({ ...from, account: { ...from.account, lookBack: look } }, look, anchor)
}

/** Goes on after the edge was seen anew. */
export function lookOn(from: Checkpoint, look: LookBack, edge: Edge): Checkpoint {
  return probe(from, { ...look, edge }, look.left === null ? look.anchor : middle(look))
}

function middle({ low, high }: LookBack): number {
  return Math.floor((low + high + 1) / 2)
}

function probe(from: Checkpoint, look: LookBack, page: number): Checkpoint {
  const { account } = from
  const asked = { ...account, lookBack: look }
  if (!mayAskAgain(account)) return giveUp({ ...from, account: asked }, look)
  return { ...from, ask: { why: 'look', page, until: look.edge.place, before: null }, account: asked }
}

/** An answer of a look back. What is new on it is found, whatever the distances say. */
export function compare(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const look = from.account.lookBack
  if (!look) return { ...from, ask: null }
  const { newToPass: found } = match
  const next = { ...from, account: takeIn(from.account, look, page, match) }
  const more = page.total === look.edge.total ? listedMore(from.account, look, page, match) : null
  return more === null ? waitForEdge(next, look) : narrow(next, look, page.number, more, found)
}

/** What is found counts for what it was looked for; and the old page of one sample is the edge of the next. */
function takeIn(account: CoverageState, look: LookBack, page: Page, match: PageMatch): CoverageState {
  const { newToPass: found } = match
  if (account.sample === null)
    return countFound({ ...account, foundBehind: account.foundBehind + found }, match)
  const sample = look.left === null ? edgeAfter(account.sample, account, page, match) : account.sample
  return { ...account, found: account.found + found, sample }
}

function countFound(account: CoverageState, match: PageMatch): CoverageState {
  const { newToPass: found } = match
  if (found > 1) return counting(account, 'together', found)
  return isSkip(account, match) ? counting(account, 'skips') : account
}

/** Whether one item was found, and between two answers: what was put in stands anywhere. */
function isSkip({ perPage }: CoverageState, { newToPass, places, placed }: PageMatch): boolean {
  const place = placed[places.indexOf(null)]
  if (newToPass !== 1 || !place || !perPage) return false
  return (Math.floor(place.position) + 1) % perPage === 0
}

/** How many more items are listed behind this page, up to the edge, than the ledger knows; null where no key tells. */
function listedMore(
  { perPage }: CoverageState,
  { edge }: LookBack,
  page: Page,
  { known, places }: PageMatch,
): number | null {
  if (!known || !perPage) return null
  const index = (page.number - 1) * perPage + known.entry
  const foundBehind = places.filter((place, entry) => entry > known.entry && place === null).length
  return edge.index - index - known.distance - foundBehind
}

function narrow(from: Checkpoint, look: LookBack, page: number, more: number, found: number): Checkpoint {
  if (look.left === null)
    return more <= 0
      ? agree(from, look)
      : halve(from, { ...look, upTo: look.edge.page, low: page, high: look.edge.page - 1, left: more })
  const left = look.left - found
  if (left <= 0) return agree(from, look)
  return halve(from, more > 0 ? { ...look, left, low: page } : { ...look, left, high: page - 1 })
}

function halve(from: Checkpoint, look: LookBack): Checkpoint {
  if (look.low < look.high) return probe(from, look, middle(look))
  if (look.rounds >= ROUNDS) return giveUp(from, look)
  // What was not found may never have been there: the list may have slid since its edge was seen.
  return waitForEdge(from, { ...look, left: null, rounds: look.rounds + 1, fails: look.fails - 1 })
}

/** The list moved under the look back. It goes on where it is, as soon as the edge was seen anew. */
function waitForEdge(from: Checkpoint, look: LookBack): Checkpoint {
  if (from.account.sample) return agree(from, look)
  const fails = look.fails + 1
  if (fails > FAILS) return giveUp(from, look)
  return { ...from, ask: null, account: { ...from.account, lookBack: { ...look, fails, waiting: true } } }
}

function agree(from: Checkpoint, { upTo }: LookBack): Checkpoint {
  const { account } = from
  const anchor = account.sample ? account.anchor : upTo
  return { ...from, ask: null, account: { ...account, lookBack: null, anchor } }
}

function giveUp(from: Checkpoint, look: LookBack): Checkpoint {
  const agreed = agree(from, look)
  return from.account.sample ? agreed : { ...agreed, account: { ...agreed.account, unsettled: true } }
}
