import { filtersText } from '../resume.ts'
import type { Job } from '../types.ts'
import {
  type AddedEnds,
  DOUBT,
  type End,
  isRefuted,
  learnFromWalk,
  NO_PLACES,
  newestEnd,
  type Places,
  type RefreshRules,
} from './ends.ts'
import { isWalkedWhole } from './price.ts'
import { afterNewestEnd, type Rates, ratesOf } from './rates.ts'

/** What a job keeps between refreshes: plain JSON, saved at the end of each and with each older page. Times are epoch milliseconds. */
export interface RefreshState {
  /** The path and filters that it is about, as one text. */
  scope: string
  /** Rows first seen later are new to the next refresh. Moves only at the end of a refresh or a full walk, so a killed one leaves no gap. */
  settledAt: number
  /** Items added at the newest end before then are in the mirror. */
  freshAsOf: number
  /**
   * Since when rows may be missing that only a full walk finds: the start of the last refresh that ended as `hole`, `unproven` or too often
   * `doubtful`, or the end of a first walk that may have missed some. Null once a later full walk is complete.
   */
  holeSince: number | null
  /** Refreshes in a row that ended as `hole`. */
  holes: number
  /** Refreshes in a row that ended as `doubtful` and settled nothing; absent: none. */
  doubts?: number
  /** The start of the last finished refresh or complete full walk, whichever is later. */
  startedAt: number
  /** The start of the last refresh, finished or not: one that fails or is killed is not begun again at once. */
  triedAt: number
  /** When the last complete full walk began, and how long it took, in milliseconds. Absent in what an older version saved: as `startedAt`. */
  walkAt?: number
  walkTook: number
  /** The page that a full walk read last, and when; absent: none is known. */
  walked?: { page: number; at: number }
  /** When both ends were read last; null before the first time. */
  bothEndsAt: number | null
  lastPage: number
  /** The list's total at the time of `settledAt`, nearly; null where it has none. */
  total: number | null
  /** `rowsAdded` of the lease, at `settledAt`. Rows beyond this number were found later. */
  rowsAdded: number
  places: Places
  /** Pages that the last refresh read from the newest end on; absent: none. */
  newestRead?: number
  /** Milliseconds between two readings of the newest end, as the price allowed last; null before the first one that was due. */
  interval: number | null
  /** Requests a minute that the share allowed then, for `status`; absent: not known. */
  share?: number
  /** How often its rows come and change; absent: nothing is known. */
  rates?: Rates
  /** Rows that older pages added since the last refresh. */
  older: number
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
  /** See `PageWriter`. */
  addedBehindAt?: number | null
  addedEnds?: AddedEnds
  /** `rowsAdded` of the lease, at the start of the walk and now. */
  rowsAdded: { first: number; last: number }
  /** What its last run has written. For a short list, which is walked instead of refreshed, that shows how often rows come. */
  written?: { added: number; changed: number }
}

/** The state that fits the list; null before its first complete full walk, and after its path or filters changed. */
export function stateOf(state: RefreshState | null, scope: string): RefreshState | null {
  return state?.scope === scope ? state : null
}

/** The state after the clock was set back: claims of a time in the future are withdrawn, and the next refresh is due one interval from now. */
export function notAfter(state: RefreshState, now: number): RefreshState {
  const { freshAsOf, holeSince, startedAt } = state
  return {
    ...state,
    freshAsOf: freshAsOf > now ? 0 : freshAsOf,
    holeSince: holeSince === null ? null : Math.min(holeSince, now),
    startedAt: Math.min(startedAt, now),
  }
}

/**
 * The state after a full walk. `settledAt` becomes the start of the walk, so that a refresh reads through the rows of the walk. After the first
 * walk, which has no older rows to stop at, it is the end. If rows came in front while the first walk read, it is just before these were
 * written: unread ones may be between them and the first page that the walk had read.
 */
export function afterFullWalk(
  before: RefreshState | null,
  walk: CompleteWalk,
  newest: End | 'auto' = 'auto',
): RefreshState {
  const state = stateOf(before, walk.scope)
  if (!state) return firstState(walk)
  const {
    startedAt,
    endedAt,
    lastPage,
    totals,
    rowsAdded,
    written = NOTHING,
    addedEnds = { first: 0, last: 0 },
  } = walk
  const hasRead = state.holeSince === null || startedAt > state.holeSince
  const isHoleRead = state.holeSince !== null && hasRead
  // Without a total, rows that had slid past the walk before were taken for new ones, so what was learned of the ends may be wrong.
  const isMislearned = isHoleRead && totals.last === null && newest === 'auto'
  const places = learnFromWalk(isMislearned ? DOUBT : state.places, newest, addedEnds)
  return {
    ...state,
    lastPage,
    ...(startedAt > state.settledAt
      ? { settledAt: startedAt, total: totals.first, rowsAdded: rowsAdded.first }
      : {}),
    ...(isWalkedWhole(walk)
      ? { rates: afterNewestEnd(knownRates(state, newest, startedAt), written, startedAt - state.startedAt) }
      : {}),
    walkAt: startedAt,
    walkTook: endedAt - startedAt,
    // Refreshes that read the wrong end have claimed what they did not read.
    freshAsOf: isRefuted(places, newest) ? startedAt : Math.max(state.freshAsOf, startedAt),
    places,
    startedAt: Math.max(state.startedAt, startedAt),
    holeSince: hasRead ? null : state.holeSince,
    holes: hasRead ? 0 : state.holes,
  }
}

const NOTHING = { added: 0, changed: 0 }

function firstState(walk: CompleteWalk): RefreshState {
  const { scope, startedAt, endedAt, lastPage, totals, isSteady, addedBehindAt = null, rowsAdded } = walk
  const isUnsure = totals.last === null || (walk.isDrifted ?? false)
  return {
    scope,
    settledAt: addedBehindAt === null ? endedAt : addedBehindAt - 1,
    freshAsOf: startedAt,
    // Nothing shows what slid past this walk, and no refresh reads behind its end: the next walk settles it.
    holeSince: isUnsure ? endedAt : null,
    holes: 0,
    startedAt,
    triedAt: startedAt,
    walkAt: startedAt,
    walkTook: endedAt - startedAt,
    bothEndsAt: null,
    lastPage,
    total: totals.last,
    rowsAdded: rowsAdded.last,
    places: isSteady ? NO_PLACES : DOUBT,
    interval: null,
    older: 0,
  }
}

/** Whether the state claims a time in the future, by a clock that ran ahead and was set back. */
export function isAhead({ freshAsOf, startedAt }: RefreshState, now: number): boolean {
  return freshAsOf > now || startedAt > now
}

/** What is known of how often rows come and change, for the list as it was read last. */
export function knownRates(
  { rates, lastPage, total, places }: RefreshState,
  newest: End | 'auto',
  now: number,
): Rates {
  return ratesOf(
    rates ?? null,
    { pages: lastPage, total, hasNewestEnd: newestEnd(places, newest) !== null },
    now,
  )
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
