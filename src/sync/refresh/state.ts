import { filtersText } from '../resume.ts'
import type { Job } from '../types.ts'
import type { End, RefreshRules } from './ends.ts'
import { DOUBT, NO_PLACES, newestEnd, type Places } from './read-ends.ts'
import { afterNewest, type Freshness, isWalkedWhole, newFreshness, withBands } from './worth.ts'

/** What a job keeps between refreshes: plain JSON, saved at the end of each and with each older page. Times are epoch milliseconds. */
export interface RefreshState {
  /** The path and filters that it is about, as one text. */
  scope: string
  /** Rows first seen later are new to the next refresh. Moves only at the end of a refresh or a full walk, so a killed one leaves no gap. */
  settledAt: number
  /** Items added at the newest end before then are in the mirror. */
  freshAsOf: number
  /** Since when rows may be missing that only a full walk finds. Null once a later full walk is complete. */
  holeSince: number | null
  /** Refreshes in a row that ended as `hole`, and as `unsettled`. */
  holes: number
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

/** The state that fits the list; null before its first complete full walk, and after its path or filters changed. */
export function stateOf(state: RefreshState | null, scope: string): RefreshState | null {
  return state?.scope === scope ? state : null
}

/** Whether the state has a time in the future, by a clock that ran ahead and was set back. */
export function claimsFuture({ freshAsOf, freshness }: RefreshState, now: number): boolean {
  return freshAsOf > now || freshness.newestAt > now
}

/** The state after the clock was set back: claims of a time in the future are withdrawn, and the next refresh is due one interval from now. */
export function notAfter(state: RefreshState, now: number): RefreshState {
  const { freshAsOf, holeSince, freshness } = state
  return {
    ...state,
    freshAsOf: freshAsOf > now ? 0 : freshAsOf,
    holeSince: holeSince === null ? null : Math.min(holeSince, now),
    freshness: {
      ...freshness,
      newestAt: Math.min(freshness.newestAt, now),
      bands: freshness.bands.map((band) => ({ ...band, at: Math.min(band.at, now) })),
    },
  }
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
  const hasRead = state.holeSince === null || startedAt > state.holeSince
  const known = isWalkedWhole(walk) ? afterNewest(state.freshness, written, startedAt) : state.freshness
  return {
    ...state,
    lastPage,
    ...(startedAt > state.settledAt
      ? { settledAt: startedAt, total: totals.first, rowsAdded: rowsAdded.first }
      : {}),
    freshness: withBands(known, lastPage, newestEnd(state.places, newest) !== null, startedAt),
    interval: isWalkedWhole(walk) ? startedAt - state.freshness.newestAt : state.interval,
    freshAsOf: Math.max(state.freshAsOf, startedAt),
    holeSince: hasRead ? null : state.holeSince,
    holes: hasRead ? 0 : state.holes,
  }
}

function firstState(walk: CompleteWalk, newest: End | 'auto'): RefreshState {
  const { scope, startedAt, endedAt, lastPage, totals, isSteady, addedBehindAt = null, rowsAdded } = walk
  const places = isSteady ? NO_PLACES : DOUBT
  const known = newFreshness(totals.last ?? rowsAdded.last, startedAt)
  return {
    scope,
    settledAt: addedBehindAt === null ? endedAt : addedBehindAt - 1,
    freshAsOf: startedAt,
    // Nothing shows what slid past this walk, and no refresh reads behind its end: the next walk settles it.
    holeSince: totals.last === null || walk.isDrifted ? endedAt : null,
    holes: 0,
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

/** True once, at the second refresh in a row that met changed rows only: a field that changes in every answer should be ignored. */
export function shouldWarnOfChanges({ holes }: RefreshState): boolean {
  return holes === 2
}

export function savedRefresh(state: RefreshState, { newest }: Pick<RefreshRules, 'newest'>): SavedRefresh {
  return { state, freshAsOf: state.freshAsOf, newest: newestEnd(state.places, newest) }
}

export function rulesOf({ collection }: Job): RefreshRules {
  return { total: collection.total, newest: collection.newest }
}

/** The list that a job reads, as text: what is known of one says nothing of another. */
export function scopeText({ collection }: Job): string {
  return `${collection.path} ${filtersText(collection.scope ?? collection.filters)}`
}
