/** An end of a list: page 1 is at `first`. */
export type End = 'first' | 'last'

/** What the decisions have to know of a list that does not change during a refresh. */
export interface RefreshRules {
  total: 'check' | 'ignore'
  /** The end where new items appear, as configured; `auto`: it is learned. */
  newest: End | 'auto'
}

/** Where new items were found lately: how many, the older ones counting less and less. */
export interface Places {
  first: number
  last: number
  /** New items that neither end showed: the total rose by them, or older pages held them. */
  elsewhere: number
}

/** What a refresh counted, from which `learnPlaces` learns. */
export interface EndCounts {
  /** Rows that it added at each end, and that older pages added since the refresh before. */
  first: number
  last: number
  older: number
  /** By how many items the total rose since then; null without a total. */
  rise: number | null
  /** Rows of the job first seen since then, wherever they were found. */
  all: number
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

/** The share of new items that makes an end worth reading, and the share that makes it the newest end. */
const WORTH_READING = 0.2
const NEWEST = 0.8

/** How often an end that is not worth reading is read, too: the total may hide that new items come there now. Milliseconds, and refreshes between two readings. */
const OTHER_END_EVERY = 3_600_000
const OTHER_END_REFRESHES = 12

const BOTH: readonly End[] = ['first', 'last']

export function learnPlaces(places: Places, found: EndCounts): Places {
  const { first, last, older } = found
  return withinMemory({
    first: places.first + first,
    last: places.last + last,
    elsewhere:
      Math.max(places.elsewhere, isDoubtful(found) ? DOUBT.elsewhere : 0) + Math.max(older, hidden(found)),
  })
}

function withinMemory(places: Places): Places {
  const scale = Math.min(1, MOST_REMEMBERED / Math.max(1, sum(places)))
  const { first, last, elsewhere } = places
  return { first: first * scale, last: last * scale, elsewhere: elsewhere * scale }
}

/** New items that the total counts, and that nothing has found. */
export function hidden({ rise, all }: Pick<EndCounts, 'rise' | 'all'>): number {
  return Math.max(0, (rise ?? 0) - all)
}

/** The total fell and nothing new was found: deletions may hide new items elsewhere. */
function isDoubtful({ first, last, all, rise }: EndCounts): boolean {
  return first + last + all === 0 && (rise ?? 0) < 0
}

/** The ends that each refresh reads, the one with more new items first; both while too few items are known. */
export function endsWorthReading(places: Places, newest: End | 'auto'): readonly End[] {
  if (newest !== 'auto') return [newest]
  const count = sum(places)
  const ends = places.last > places.first ? BOTH.toReversed() : BOTH
  return count < LEAST ? ends : ends.filter((end) => places[end] >= WORTH_READING * count)
}

/** The places after a full walk: what it found at ends that refreshes do not read counts, too. */
export function learnFromWalk(places: Places, newest: End | 'auto', added: AddedEnds): Places {
  const worthReading = endsWorthReading(places, newest)
  const unread = (end: End) => (worthReading.includes(end) ? 0 : added[end])
  return withinMemory({
    ...places,
    first: places.first + unread('first'),
    last: places.last + unread('last'),
  })
}

/** Whether new items appear at the other end than the configured one. */
export function isRefuted({ first, last }: Places, newest: End | 'auto'): boolean {
  const other = newest === 'first' ? last : first
  return newest !== 'auto' && other > 0 && other >= WORTH_READING * (first + last)
}

/** The end where new items appear; null while neither is known to be it, or the configured one is refuted. */
export function newestEnd(places: Places, newest: End | 'auto'): End | null {
  if (newest !== 'auto') return isRefuted(places, newest) ? null : newest
  const count = sum(places)
  return count < LEAST ? null : (BOTH.find((end) => places[end] >= NEWEST * count) ?? null)
}

/**
 * The ends that a refresh at this time reads: those worth reading, and from time to time the other one too.
 * @param bothEndsAt When both were read last. @param interval Milliseconds between two refreshes; null: not known.
 */
export function endsToRead(
  { places, bothEndsAt, interval }: { places: Places; bothEndsAt: number | null; interval: number | null },
  newest: End | 'auto',
  now: number,
): readonly End[] {
  const worthReading = endsWorthReading(places, newest)
  const every = Math.max(OTHER_END_EVERY, OTHER_END_REFRESHES * (interval ?? 0))
  const isDue = bothEndsAt === null || Math.abs(now - bothEndsAt) >= every
  return newest === 'auto' && isDue
    ? [...worthReading, ...BOTH.filter((end) => !worthReading.includes(end))]
    : worthReading
}

function sum({ first, last, elsewhere }: Places): number {
  return first + last + elsewhere
}

/** How many rows a full walk was the first to see at each end of the list. */
export interface AddedEnds {
  first: number
  last: number
}
