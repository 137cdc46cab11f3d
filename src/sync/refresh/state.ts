import { filtersText } from '../resume.ts'
import type { Job } from '../types.ts'
import { type Asking, type End, type EndReading, readEnd } from './ends.ts'
import { afterNewest, type Freshness, isWalkedWhole, newFreshness, withBands } from './worth.ts'

// What a list keeps between refreshes: which ends are read, and what may be claimed then.

/** Plain JSON, saved at the end of each refresh. Times are epoch milliseconds. */
export interface RefreshState {
  /** The path and filters that it is about, as one text. */
  scope: string
  /** Rows first seen later are new to the next refresh. Moves only at the end of a refresh or a full walk, so a killed one leaves no gap. */
  settledAt: number
  /** Items added at the newest end before then are in the mirror. */
  freshAsOf: number
  /** Since when rows may be missing that only a full walk finds. Null once a later full walk is complete. */
  holeSince: number | null
  /** Refreshes in a row that settled nothing. */
  unsettled: number
  /** When both ends were read last; null before the first time. */
  bothEndsAt: number | null
  lastPage: number
  /** The list's total at the time of `settledAt`, nearly; null where it has none. */
  total: number | null
  /** `rowsAdded` of the lease, at `settledAt`. Rows beyond this number were found later. */
  rowsAdded: number
  places: Places
  /** Rows that older pages added since the last refresh. */
  older: number
  /** Pages that the last reading of the newest end showed. */
  shown: number
  freshness: Freshness
  /** For `status`: milliseconds between the last two readings of the newest end, and requests a minute of the share; null before. */
  interval: number | null
  share: number | null
}

/** Where new items were found lately: how many, the older ones counting less and less. `elsewhere`: neither end showed them. */
export interface Places {
  first: number
  last: number
  elsewhere: number
}

/** What does not change during a refresh. `newest`: the end where new items appear; `auto`: it is learned. */
export interface RefreshRules {
  total: 'check' | 'ignore'
  newest: End | 'auto'
}

/** What a job saves between refreshes, and what people read of it. */
export interface SavedRefresh {
  state: RefreshState
  /** `sync_status.fresh_as_of`, unless `as_of` is later. Epoch milliseconds. */
  freshAsOf: number
  newest: End | null
}

/** What each job of a store saved. */
export interface JobRefresh {
  organizationId: string
  collection: string
  state: RefreshState
}

/** A full walk that is complete. */
export interface CompleteWalk {
  scope: string
  startedAt: number
  /** The time of its last page. */
  endedAt: number
  /** Of its last answer. */
  lastPage: number
  /** Of its first answer and of its last one. */
  totals: { first: number | null; last: number | null }
  /** Whether the list was seen to stand still; or moved so much that nobody knows what the walk has missed. */
  isSteady: boolean
  isDrifted?: boolean
  /** When it began to look again at a list that grew in front: what it wrote from then on may have unread rows behind it. Null: never. */
  addedBehindAt?: number | null
  /** `rowsAdded` of the lease, at the start of the walk and now. */
  rowsAdded: { first: number; last: number }
  /** What its last run has written. For a short list, which is walked instead of refreshed, that shows how often rows come. */
  written?: { added: number; changed: number }
}

/**
 * The list moved, and nothing new was found at the ends that were read: something may be new elsewhere. Half an item, so that the first item
 * that is really found at an end outweighs it.
 */
const DOUBT = 0.5

/** How many new items are remembered: if new ones come to the other end, that is learned after about half as many. */
const MOST_REMEMBERED = 20

/** With fewer items, chance decides where they were found. */
const LEAST = 3

/** The part of new items that makes an end worth reading, and the part that makes it the newest end. */
const WORTH_READING = 0.2
const NEWEST = 0.8

/** How often an end that is not worth reading is read, too: the total may hide that new items come there now. Milliseconds, and refreshes between two readings. */
const OTHER_END_EVERY = 3_600_000
const OTHER_END_REFRESHES = 12

/** After so many refreshes in a row that settled nothing, the rest is left to a walk: each of them has more to read. */
const MOST_UNSETTLED = 3

const BOTH: readonly End[] = ['first', 'last']

const sum = ({ first, last, elsewhere }: Places) => first + last + elsewhere

/** The end where new items appear; null while neither is known to be it. */
export function newestEnd(places: Places, newest: End | 'auto'): End | null {
  if (newest !== 'auto') return newest
  const count = sum(places)
  return count < LEAST ? null : (BOTH.find((end) => places[end] >= NEWEST * count) ?? null)
}

/** The ends that each refresh reads, the one with more new items first; both while too few items are known. */
export function endsWorthReading(places: Places, newest: End | 'auto'): readonly End[] {
  if (newest !== 'auto') return [newest]
  const count = sum(places)
  const ends = places.last > places.first ? BOTH.toReversed() : BOTH
  return count < LEAST ? ends : ends.filter((end) => places[end] >= WORTH_READING * count)
}

/**
 * Reads the ends of a list that are worth reading, and from time to time the other one too; that also where the total says that more is new
 * than was found.
 * @returns The state to be saved then, and how each end was read.
 */
export function* readEnds<Id>(
  state: RefreshState,
  rules: RefreshRules,
  startedAt: number,
): Asking<Id, { state: RefreshState; done: readonly EndReading[] }> {
  const { places, bothEndsAt, interval } = state
  const ends = [...endsWorthReading(places, rules.newest)]
  const others = rules.newest === 'auto' ? BOTH.filter((end) => !ends.includes(end)) : []
  const every = Math.max(OTHER_END_EVERY, OTHER_END_REFRESHES * (interval ?? 0))
  if (bothEndsAt === null || Math.abs(startedAt - bothEndsAt) >= every) ends.push(...others.splice(0))
  const done: EndReading[] = []
  for (const end of ends) {
    const lastPage = done.at(-1)?.lastPage ?? state.lastPage
    done.push(yield* readEnd<Id>(end, { ...state, lastPage }, rules.total === 'check'))
    if (done.length === 1 && ends.length === 1 && countNew(state, done).hidden > 0) ends.push(...others)
  }
  return { state: afterReading(state, rules, startedAt, done), done }
}

/** New items: those that were found, and those that the total counts and that nothing has found. */
function countNew({ total }: RefreshState, done: readonly EndReading[]) {
  const found = done.at(-1)?.found ?? 0
  // An item without a usable key is no row, but the total counts it.
  const counted = found + done.reduce((all, { rejected }) => all + rejected, 0)
  const now = done[0]?.total ?? null
  const rise = total === null || now === null ? 0 : now - total
  return { found, rise, hidden: Math.max(0, rise - counted) }
}

function afterReading(
  state: RefreshState,
  { newest, total: rule }: RefreshRules,
  startedAt: number,
  done: readonly EndReading[],
): RefreshState {
  const last = done.at(-1)
  const timed = { ...state, interval: Math.max(0, startedAt - state.freshness.newestAt) }
  if (!last) return { ...timed, freshness: { ...state.freshness, newestAt: startedAt } }
  const places = placesAfter(state, done)
  const end = newestEnd(places, newest)
  // What is read only now and then does not count beside the ends worth reading.
  const judged = done.filter((one) => endsWorthReading(places, newest).includes(one.end))
  const outcomes = (judged.length > 0 ? judged : done).map(({ outcome }) => outcome)
  const isUnsettled = outcomes.includes('unsettled')
  // An answer that lacked items by mistake must not shorten a long list: a short one would be walked instead of refreshed.
  const lastPage = isUnsettled ? Math.max(last.lastPage, state.lastPage) : last.lastPage
  const added = done.reduce((all, one) => all + one.added, 0)
  const changed = done.reduce((all, one) => all + one.changed, 0)
  const known = afterNewest(state.freshness, { added, changed }, startedAt)
  const read = {
    ...timed,
    bothEndsAt: done.length > 1 ? startedAt : state.bothEndsAt,
    lastPage,
    shown: done.find((one) => one.end === end)?.pages ?? 0,
    freshness: withBands(known, lastPage, end !== null, startedAt),
  }
  const unsettled = isUnsettled ? state.unsettled + 1 : 0
  if (unsettled > 0 && unsettled < MOST_UNSETTLED) return { ...read, unsettled }
  const total = done[0]?.total ?? null
  const settledAt = last.at
  const rowsAdded = state.rowsAdded + last.found
  const settled = { ...read, unsettled: 0, settledAt, places, older: 0, total, rowsAdded }
  // No later refresh reads what was left unread: only a walk does.
  if (outcomes.some((outcome) => outcome !== 'settled')) return { ...settled, holeSince: startedAt }
  const isCounted = rule === 'check' && done.every((one) => one.total !== null)
  // While no end is known both are read, and one of them is the newest as long as nothing is new elsewhere.
  const isNewestRead = end !== null || (places.elsewhere === 0 && done.length > 1)
  const isClaimed = isCounted && isNewestRead && state.holeSince === null
  return { ...settled, freshAsOf: isClaimed ? Math.max(startedAt, state.freshAsOf) : state.freshAsOf }
}

function placesAfter(state: RefreshState, done: readonly EndReading[]): Places {
  const { places, older } = state
  const { found, rise, hidden } = countNew(state, done)
  const at = (end: End) => done.find((one) => one.end === end)?.addedHere ?? 0
  // Deletions may hide new items elsewhere.
  const isDoubtful = at('first') + at('last') + found === 0 && rise < 0
  const grown = {
    first: places.first + at('first'),
    last: places.last + at('last'),
    elsewhere: Math.max(places.elsewhere, isDoubtful ? DOUBT : 0) + Math.max(older, hidden),
  }
  const scale = Math.min(1, MOST_REMEMBERED / Math.max(1, sum(grown)))
  return { first: grown.first * scale, last: grown.last * scale, elsewhere: grown.elsewhere * scale }
}

/**
 * The state after a full walk. `settledAt` becomes the start of the walk, so that a refresh reads through the rows of the walk. After the first
 * walk, which has no older rows to stop at, it is the end.
 */
export function afterFullWalk(
  before: RefreshState | null,
  walk: CompleteWalk,
  newest: End | 'auto' = 'auto',
): RefreshState {
  const state = stateOf(before, walk.scope)
  if (!state) return firstState(walk, newest)
  const { startedAt, lastPage, totals, rowsAdded, written = { added: 0, changed: 0 } } = walk
  const isShort = isWalkedWhole(walk)
  const known = isShort ? afterNewest(state.freshness, written, startedAt) : state.freshness
  return {
    ...state,
    lastPage,
    ...(startedAt > state.settledAt
      ? { settledAt: startedAt, total: totals.first, rowsAdded: rowsAdded.first }
      : {}),
    freshness: withBands(known, lastPage, newestEnd(state.places, newest) !== null, startedAt),
    interval: isShort ? Math.max(0, startedAt - state.freshness.newestAt) : state.interval,
    freshAsOf: Math.max(state.freshAsOf, startedAt),
    holeSince: startedAt > (state.holeSince ?? 0) ? null : state.holeSince,
  }
}

function firstState(walk: CompleteWalk, newest: End | 'auto'): RefreshState {
  const { scope, startedAt, endedAt, lastPage, totals, addedBehindAt = null, rowsAdded } = walk
  const places = { first: 0, last: 0, elsewhere: walk.isSteady ? 0 : DOUBT }
  const known = newFreshness(totals.last ?? rowsAdded.last, startedAt)
  return {
    scope,
    settledAt: addedBehindAt === null ? endedAt : addedBehindAt - 1,
    freshAsOf: startedAt,
    // Nothing shows what slid past this walk, and no refresh reads behind its end: the next walk settles it.
    holeSince: totals.last === null || walk.isDrifted ? endedAt : null,
    unsettled: 0,
    bothEndsAt: null,
    lastPage,
    total: totals.last,
    rowsAdded: rowsAdded.last,
    places,
    older: 0,
    shown: 0,
    freshness: withBands(known, lastPage, newestEnd(places, newest) !== null, startedAt),
    interval: null,
    share: null,
  }
}

/** The state that fits the list; null before its first complete full walk, and after its path or filters changed. */
export function stateOf(state: RefreshState | null, scope: string): RefreshState | null {
  return state?.scope === scope ? state : null
}

/** The state after the clock was set back: claims of a time in the future are withdrawn. A newest end that was read then is due at once, by the plan, too. */
export function notAfter(state: RefreshState, now: number): RefreshState {
  const { freshAsOf, holeSince, freshness } = state
  const bands = freshness.bands.map((band) => ({ ...band, at: Math.min(band.at, now) }))
  return {
    ...state,
    freshAsOf: freshAsOf > now ? 0 : freshAsOf,
    holeSince: holeSince === null ? null : Math.min(holeSince, now),
    freshness: { ...freshness, bands },
  }
}

export function savedRefresh(state: RefreshState, { newest }: Pick<RefreshRules, 'newest'>): SavedRefresh {
  return { state, freshAsOf: state.freshAsOf, newest: newestEnd(state.places, newest) }
}

/** The list that a job reads, as text: what is known of one says nothing of another. */
export function scopeText({ collection }: Job): string {
  return `${collection.path} ${filtersText(collection.scope ?? collection.filters)}`
}
