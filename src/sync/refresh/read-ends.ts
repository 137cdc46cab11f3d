import { type Asking, type End, type EndReading, type Outcome, type RefreshRules, readEnd } from './ends.ts'
import type { RefreshState } from './state.ts'
import { afterNewest, withBands } from './worth.ts'

// Which ends of a list are read, and what a refresh may claim then.

/** Where new items were found lately: how many, the older ones counting less and less. */
export interface Places {
  first: number
  last: number
  /** New items that neither end showed: the total rose by them, or older pages held them. */
  elsewhere: number
}

export const NO_PLACES: Places = { first: 0, last: 0, elsewhere: 0 }

/**
 * The list moved, and nothing new was found at the ends that were read: something may be new elsewhere. Half an item, so that the first item
 * that is really found at an end outweighs it.
 */
export const DOUBT: Places = { ...NO_PLACES, elsewhere: 0.5 }

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

/** The ends that a refresh at this time reads: those worth reading, and from time to time the other one too. */
function endsToRead(
  { places, bothEndsAt, interval }: RefreshState,
  newest: End | 'auto',
  now: number,
): readonly End[] {
  const ends = endsWorthReading(places, newest)
  const every = Math.max(OTHER_END_EVERY, OTHER_END_REFRESHES * (interval ?? 0))
  const isDue = bothEndsAt === null || Math.abs(now - bothEndsAt) >= every
  return newest === 'auto' && isDue ? [...ends, ...BOTH.filter((end) => !ends.includes(end))] : ends
}

/**
 * Reads the ends of a list, without its older pages. If new items appear at neither end, it reads nothing, except both ends from time to time.
 * @returns The state to be saved then, and how each end was read.
 */
export function* readEnds<Id>(
  state: RefreshState,
  rules: RefreshRules,
  startedAt: number,
): Asking<Id, { state: RefreshState; done: readonly EndReading<unknown>[] }> {
  const done: EndReading<Id>[] = []
  let waiting = endsToRead(state, rules.newest, startedAt)
  for (let [end] = waiting; end; [end] = waiting) {
    const lastPage = done.at(-1)?.lastPage ?? state.lastPage
    done.push(yield* readEnd<Id>(end, { ...state, lastPage }, rules))
    waiting = waiting.slice(1)
    // The total says that more is new than was found.
    if (
      done.length === 1 &&
      waiting.length === 0 &&
      rules.newest === 'auto' &&
      countNew(state, done).hidden > 0
    )
      waiting = [end === 'first' ? 'last' : 'first']
  }
  return { state: finish(state, rules, startedAt, done), done }
}

/** New items: those that were found, and those that the total counts and that nothing has found. */
function countNew({ total }: RefreshState, done: readonly EndReading<unknown>[]) {
  const found = done.at(-1)?.found ?? 0
  // An item without a usable key is no row, but the total counts it.
  const counted = found + done.reduce((all, { rejected }) => all + rejected, 0)
  const now = done[0]?.total ?? null
  const rise = total === null || now === null ? 0 : now - total
  return { found, rise, hidden: Math.max(0, rise - counted) }
}

/** The state once all ends are read. */
function finish(
  state: RefreshState,
  { newest, total: rule }: RefreshRules,
  startedAt: number,
  done: readonly EndReading<unknown>[],
): RefreshState {
  const last = done.at(-1)
  const timed = { ...state, interval: startedAt - state.freshness.newestAt }
  if (!last) return { ...timed, freshness: { ...state.freshness, newestAt: startedAt } }
  const places = placesAfter(state, done)
  const end = newestEnd(places, newest)
  // An answer that lacked items by mistake must not shorten a long list: a short one would be walked instead of refreshed.
  const outcome = outcomeOf(done, endsWorthReading(places, newest))
  const isMistaken = outcome === 'unsettled' && done.some(({ met }) => met.size > 0)
  const lastPage = isMistaken ? Math.max(last.lastPage, state.lastPage) : last.lastPage
  const written = {
    added: done.reduce((all, { added }) => all + added, 0),
    changed: done.reduce((all, { changed }) => all + changed, 0),
  }
  const read = {
    ...timed,
    bothEndsAt: done.length > 1 ? startedAt : state.bothEndsAt,
    lastPage,
    shown: done.find((one) => one.end === end)?.pages.size ?? 0,
    freshness: withBands(afterNewest(state.freshness, written, startedAt), lastPage, end !== null, startedAt),
  }
  const unsettled = outcome === 'unsettled' ? state.unsettled + 1 : 0
  if (unsettled > 0 && unsettled < MOST_UNSETTLED) return { ...read, unsettled }
  const settled = {
    ...read,
    unsettled: 0,
    settledAt: last.at,
    places,
    older: 0,
    total: done[0]?.total ?? null,
    rowsAdded: state.rowsAdded + last.found,
    holes: outcome === 'hole' ? state.holes + 1 : 0,
  }
  // No later refresh reads what was left unread: only a walk does.
  if (outcome !== 'settled') return { ...settled, holeSince: startedAt }
  const isCounted = rule === 'check' && done.every(({ total }) => total !== null)
  // While no end is known both are read, and one of them is the newest as long as nothing is new elsewhere.
  const isNewestRead = end !== null || (places.elsewhere === 0 && done.length > 1)
  const isClaimed = isCounted && isNewestRead && state.holeSince === null
  return { ...settled, freshAsOf: isClaimed ? Math.max(startedAt, state.freshAsOf) : state.freshAsOf }
}

function placesAfter(state: RefreshState, done: readonly EndReading<unknown>[]): Places {
  const { places, older } = state
  const { found, rise, hidden } = countNew(state, done)
  const at = (end: End) => done.find((one) => one.end === end)?.addedHere ?? 0
  // Deletions may hide new items elsewhere.
  const isDoubtful = at('first') + at('last') + found === 0 && rise < 0
  const grown = {
    first: places.first + at('first'),
    last: places.last + at('last'),
    elsewhere: Math.max(places.elsewhere, isDoubtful ? DOUBT.elsewhere : 0) + Math.max(older, hidden),
  }
  const scale = Math.min(1, MOST_REMEMBERED / Math.max(1, sum(grown)))
  return { first: grown.first * scale, last: grown.last * scale, elsewhere: grown.elsewhere * scale }
}

/** The outcome of the ends worth reading; that of an end which is only read now and then does not count beside theirs. */
function outcomeOf(done: readonly EndReading<unknown>[], worthReading: readonly End[]): Outcome {
  const read = done.filter(({ end }) => worthReading.includes(end))
  const outcomes = (read.length > 0 ? read : done).map(({ outcome }) => outcome)
  return (['unsettled', 'hole'] as const).find((outcome) => outcomes.includes(outcome)) ?? 'settled'
}
