import { z } from 'zod'
import type { WalkReading } from '../coverage/read-list.ts'
import { filtersText } from '../resume.ts'
import type { Coverage, Job } from '../types.ts'
import { type Asking, type End, type EndReading, readEnd, type Shown } from './ends.ts'
import { afterNewest, isWalkedWhole, newFreshness, withBands } from './worth.ts'

// What a list keeps between refreshes: which ends are read, and what may be claimed then.

/** Where new items were found lately: how many, the older ones counting less and less. `elsewhere`: neither end showed them. */
const PLACES = z.object({ first: z.number(), last: z.number(), elsewhere: z.number() })
export type NewsPlaces = z.infer<typeof PLACES>

/**
 * Pages that are read equally often. `rate`: rows that come and change on a page, a minute. `at`: about when the page was read that is next.
 * `read`: pages of this round, from old to new: rows drift to older pages, and a reader that moved the same way would miss them.
 */
const BAND = z.object({ rate: z.number(), at: z.number(), read: z.number() })

/** Saved as JSON with each refresh. Times are epoch milliseconds. What is not so was saved by another version, and is as if nothing was. */
const STATE = z.object({
  /** The path and filters that it is about, as one text. */
  scope: z.string(),
  /** Rows first seen later are new to the next refresh. Moves only at the end of a refresh or a full walk, so a killed one leaves no gap. */
  settledAt: z.number(),
  /** Items added at the newest end before then are in the mirror. */
  freshAsOf: z.number(),
  /** Since when rows may be missing that only a full walk finds. Null once a later full walk is complete. */
  holeSince: z.number().nullable(),
  /** Refreshes in a row that settled nothing. */
  unsettled: z.number(),
  /** When both ends were read last; null before the first time. */
  bothEndsAt: z.number().nullable(),
  /** The list's total at the time of `settledAt`, nearly; null where it has none. */
  total: z.number().nullable(),
  /** `rowsAdded` of the lease, at `settledAt`. Rows beyond this number were found later. */
  rowsAdded: z.number(),
  places: PLACES,
  /** Milliseconds between the last two readings of the newest end; null before. */
  interval: z.number().nullable(),
  lastPage: z.number(),
  /** Pages that the last reading of the newest end showed. */
  shown: z.number(),
  /** Rows that come and change at the newest end, a minute; a new one counts more. */
  news: z.number(),
  /** When the reading of the newest end began last. */
  newestAt: z.number(),
  /** The newest end, from which pages are counted; null while it is not known: then all pages are one band, counted from the first. */
  newest: z.enum(['first', 'last']).nullable(),
  /** Older pages by depth: 2-3, 4-7, 8-15, ... */
  bands: z.array(BAND).readonly(),
})
export type RefreshState = z.infer<typeof STATE>

/** The end where new items appear, as it is configured; `auto`: it is learned. */
type Configured = Job['collection']['newest']

/** A full walk that is complete. */
export interface CompleteWalk extends Pick<WalkReading, 'lastPage' | 'totals' | 'grewAt'> {
  scope: string
  startedAt: number
  /** The time of its last page. */
  endedAt: number
  coverage: Coverage | null
  /** `rowsAdded` of the lease, at the start of the walk and now. For a short list, which is walked instead of refreshed, that shows how often rows come. */
  rowsAdded: { first: number; last: number }
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
/** How often an end that is not worth reading is read, too, since the total may hide that new items come there now: milliseconds, and refreshes, which come seldom where many lists share. */
const OTHER_END_EVERY = 3_600_000
const OTHER_END_REFRESHES = 12
/** After so many refreshes in a row that settled nothing, the rest is left to a walk: each of them has more to read. */
const MOST_UNSETTLED = 3

const BOTH: readonly End[] = ['first', 'last']

const sum = ({ first, last, elsewhere }: NewsPlaces) => first + last + elsewhere

/** The end where new items appear; null while neither is known to be it. */
export function newestEnd(places: NewsPlaces, newest: Configured): End | null {
  if (newest !== 'auto') return newest
  const count = sum(places)
  return count < LEAST ? null : (BOTH.find((end) => places[end] >= NEWEST * count) ?? null)
}

/** The ends that each refresh reads, the one with more new items first; both while too few items are known. */
export function endsWorthReading(places: NewsPlaces, newest: Configured): readonly End[] {
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
  newest: Configured,
  startedAt: number,
): Asking<Id, { state: RefreshState; done: readonly EndReading[] }> {
  const { places, bothEndsAt, settledAt, lastPage, rowsAdded } = state
  const shown: Shown = { lastPage, at: settledAt, rowsAdded, added: 0, changed: 0, rejected: 0 }
  const ends = [...endsWorthReading(places, newest)]
  const others = newest === 'auto' ? BOTH.filter((end) => !ends.includes(end)) : []
  const otherEvery = Math.max(OTHER_END_EVERY, OTHER_END_REFRESHES * (state.interval ?? 0))
  const isDue = bothEndsAt === null || Math.abs(startedAt - bothEndsAt) >= otherEvery
  if (isDue) ends.push(...others.splice(0))
  const done: EndReading[] = []
  for (const end of ends) {
    done.push(yield* readEnd<Id>(end, settledAt, shown))
    if (ends.length === 1 && newsOf(state, shown, done).hidden > 0) ends.push(...others)
  }
  return { state: afterReading(state, newest, startedAt, shown, done), done }
}

/** Rows that were found, how the total rose, and by how much more: an item without a usable key is no row, but the total counts it. */
function newsOf(before: RefreshState, { rowsAdded, rejected }: Shown, [first]: readonly EndReading[]) {
  const found = rowsAdded - before.rowsAdded
  const total = first?.total ?? null
  const rise = total === null || before.total === null ? 0 : total - before.total
  return { found, rise, hidden: Math.max(0, rise - found - rejected) }
}

function afterReading(
  before: RefreshState,
  newest: Configured,
  startedAt: number,
  shown: Shown,
  done: readonly EndReading[],
): RefreshState {
  const interval = Math.max(0, startedAt - before.newestAt)
  if (done.length === 0) return { ...before, interval, newestAt: startedAt }
  const places = placesAfter(before, shown, done)
  // What is read only now and then does not count beside the ends worth reading.
  const judged = done.filter(({ end }) => endsWorthReading(places, newest).includes(end))
  const outcomes = (judged.length > 0 ? judged : done).map(({ outcome }) => outcome)
  const isUnsettled = outcomes.includes('unsettled')
  const unsettled = isUnsettled ? (before.unsettled + 1) % MOST_UNSETTLED : 0
  const end = unsettled > 0 ? before.newest : newestEnd(places, newest)
  const known = {
    ...afterNewest(before, shown, startedAt),
    interval,
    unsettled,
    // An answer that lacked items by mistake must not shorten a long list: a short one would be walked instead of refreshed.
    lastPage: isUnsettled ? Math.max(shown.lastPage, before.lastPage) : shown.lastPage,
    bothEndsAt: done.length > 1 ? startedAt : before.bothEndsAt,
    shown: done.find((one) => one.end === end)?.pages ?? 0,
  }
  const read = withBands(known, end, startedAt)
  if (unsettled > 0) return read
  const total = done[0]?.total ?? null
  const settled = { ...read, settledAt: shown.at, places, total, rowsAdded: shown.rowsAdded }
  // No later refresh reads what was left unread: only a walk does.
  if (outcomes.some((outcome) => outcome !== 'settled')) return { ...settled, holeSince: startedAt }
  const isCounted = done.every((one) => one.total !== null)
  // While no end is known both are read, and one of them is the newest as long as nothing is new elsewhere.
  const isNewestRead = end !== null || (places.elsewhere === 0 && done.length > 1)
  const isClaimed = isCounted && isNewestRead && before.holeSince === null
  return isClaimed ? { ...settled, freshAsOf: Math.max(startedAt, before.freshAsOf) } : settled
}

function placesAfter(before: RefreshState, shown: Shown, done: readonly EndReading[]): NewsPlaces {
  const { found, rise, hidden } = newsOf(before, shown, done)
  const at = (end: End) => done.find((one) => one.end === end)?.added ?? 0
  // Deletions may hide new items elsewhere.
  const isDoubtful = at('first') + at('last') + found === 0 && rise < 0
  const first = before.places.first + at('first')
  const last = before.places.last + at('last')
  const elsewhere = Math.max(before.places.elsewhere, isDoubtful ? DOUBT : 0) + hidden
  const scale = Math.min(1, MOST_REMEMBERED / Math.max(1, first + last + elsewhere))
  return { first: first * scale, last: last * scale, elsewhere: elsewhere * scale }
}

/** The state after rows were added on an older page. */
export function addedElsewhere<S extends RefreshState>(state: S, count: number): S {
  const { places } = state
  return count === 0 ? state : { ...state, places: { ...places, elsewhere: places.elsewhere + count } }
}

/**
 * The state after a full walk. `settledAt` becomes the start of the walk, so that a refresh reads through the rows of the walk. After the first
 * walk, which has no older rows to stop at, it is the end.
 */
export function afterFullWalk(
  before: RefreshState | null,
  walk: CompleteWalk,
  newest: Configured = 'auto',
): RefreshState {
  const { startedAt, lastPage, totals, rowsAdded } = walk
  const state = { ...(before ?? firstState(walk)), lastPage }
  const isRefresh = before !== null && isWalkedWhole(walk)
  const found = { added: rowsAdded.last - rowsAdded.first, changed: 0 }
  const known = isRefresh ? afterNewest(state, found, startedAt) : state
  const isLater = startedAt > state.settledAt
  return {
    ...withBands(known, newestEnd(state.places, newest), startedAt),
    ...(isLater ? { settledAt: startedAt, total: totals.first, rowsAdded: rowsAdded.first } : {}),
    interval: isRefresh ? Math.max(0, startedAt - before.newestAt) : state.interval,
    freshAsOf: Math.max(state.freshAsOf, startedAt),
    holeSince: startedAt > (state.holeSince ?? 0) ? null : state.holeSince,
  }
}

function firstState(walk: CompleteWalk): RefreshState {
  const { scope, startedAt, endedAt, lastPage, totals, coverage, grewAt, rowsAdded } = walk
  return {
    ...newFreshness(totals.last ?? rowsAdded.last, lastPage, startedAt),
    scope,
    // What the walk wrote from `grewAt` on may have unread rows behind it.
    settledAt: grewAt === null ? endedAt : grewAt - 1,
    freshAsOf: startedAt,
    // Nothing shows what slid past this walk, and no refresh reads behind its end: the next walk settles it.
    holeSince: totals.last === null || coverage === 'drifted' ? endedAt : null,
    unsettled: 0,
    bothEndsAt: null,
    total: totals.last,
    rowsAdded: rowsAdded.last,
    places: { first: 0, last: 0, elsewhere: coverage === 'steady' ? 0 : DOUBT },
    interval: null,
  }
}

/**
 * What was saved, if it is of this list; null before its first complete full walk, and after its path or filters changed. Where a clock that was
 * ahead was set back since, claims of a time in the future are withdrawn.
 */
export function stateOf(saved: unknown, scope: string, now: number): RefreshState | null {
  const { data: state } = STATE.safeParse(saved)
  return state?.scope === scope ? notAfter(state, now) : null
}

/** The state after the clock was set back. A newest end that was read then is due at once. */
export function notAfter(state: RefreshState, now: number): RefreshState {
  const { freshAsOf, holeSince } = state
  return {
    ...state,
    freshAsOf: freshAsOf > now ? 0 : freshAsOf,
    holeSince: holeSince === null ? null : Math.min(holeSince, now),
    bands: state.bands.map((band) => ({ ...band, at: Math.min(band.at, now) })),
  }
}

/** The list that a job reads, as text: what is known of one says nothing of another. */
export function scopeText({ collection }: Job): string {
  return `${collection.path} ${filtersText(collection.scope ?? collection.filters)}`
}
