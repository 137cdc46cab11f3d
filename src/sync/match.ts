import type { ListPosition, Question } from './coverage/state.ts'
import type { ListedItem } from './items.ts'
import type { SeenItems } from './seen.ts'
import type { LedgerEntry } from './store.ts'
import type { Checkpoint, Page } from './types.ts'

/** A page compared with what the walk has seen. */
export interface PageMatch {
  /** The number of the answer in the page ledger. */
  ordinal: number
  pass: number
  why: Question['why']
  /** The distinct items of the page, in list order. */
  items: readonly ListedItem[]
  /** Items that are new to this walk, rejected ones too. */
  newToWalk: number
  newToPass: number
  /** The position of each item in this pass before this answer; null for a new one. */
  previous: (ListPosition | null)[]
  /** The position of each item after this answer. */
  positions: ListPosition[]
  /** The last known item at or before the position asked about, by its index on the page, and the number of items from it to there. */
  known: { index: number; distance: number } | null
}

/** Compares the items of a page with what the walk has seen; the checkpoint says why the page was asked for. */
export function matchPage(
  items: readonly ListedItem[],
  { pass, ask }: Checkpoint,
  seen: SeenItems,
): PageMatch {
  const why = ask?.why ?? 'forward'
  const ordinal = seen.answers + 1
  const before = items.map(({ id }) => seen.find(id))
  const previous = before.map((found) => (found?.pass === pass ? found : null))
  return {
    ordinal,
    pass,
    why,
    items,
    newToWalk: before.filter((found) => found === undefined).length,
    newToPass: previous.filter((found) => found === null).length,
    previous,
    positions:
      why === 'forward'
        ? previous.map((_, position) => ({ segment: ordinal, position }))
        : positionsFound(previous, seen, ask?.before ?? null, ordinal),
    known: ask?.until ? lastKnown(previous, ask.until, seen) : null,
  }
}

/** Returns the answer's line for the page ledger. */
export function ledgerEntry(page: Page, match: PageMatch): LedgerEntry {
  const { ordinal, pass, why, items, previous, positions } = match
  // A page that was asked for again does not move known items.
  const found = () => positions.map((position, index) => (previous[index] ? null : position))
  return {
    ordinal,
    pass,
    page: page.number,
    total: page.total,
    why,
    ids: items.map(({ id }) => id),
    positions: why === 'forward' ? null : found(),
  }
}

/** The order of a walk's items. */
type ListOrder = Pick<SeenItems, 'after' | 'before' | 'first' | 'distance'>

/**
 * The last known item at or before a position. Prefers one whose neighbour on the page is in the same segment: an
 * item that was moved is not where the ledger says.
 */
function lastKnown(
  previous: readonly (ListPosition | null)[],
  until: ListPosition,
  { distance }: ListOrder,
): PageMatch['known'] {
  const known = [...previous.keys()].filter((at) => isUpTo(previous[at], until))
  const index = known.findLast((at) => previous[at]?.segment === previous[at - 1]?.segment) ?? known.at(-1)
  const place = index === undefined ? null : previous[index]
  return index === undefined || !place ? null : { index, distance: distance(place, until) }
}

function isUpTo(place: ListPosition | null | undefined, until: ListPosition): boolean {
  if (!place) return false
  return (
    place.segment < until.segment || (place.segment === until.segment && place.position <= until.position)
  )
}

/**
 * The positions of the items of a page that was asked for again. A known item keeps its position; a new one goes after
 * the item before it on the page, or else in front of the first known one. Without any known item all go before
 * the segment `before`; null: they become a segment of their own.
 */
function positionsFound(
  known: readonly (ListPosition | null)[],
  neighbours: ListOrder,
  before: number | null,
  own: number,
): ListPosition[] {
  const first = known.findIndex((place) => place !== null)
  const anchor = known[first]
  if (!anchor) return known.map((_, index) => inFront(index - known.length, before, own, neighbours))
  const positions = leading(first, anchor, neighbours)
  for (let index = first; index < known.length; ) {
    const here = known[index]
    if (here) {
      positions.push(here)
      index++
      continue
    }
    const until = known.findIndex((place, at) => at > index && place !== null)
    const end = until === -1 ? known.length : until
    positions.push(...trailing(positions.at(-1) ?? anchor, end - index, neighbours))
    index = end
  }
  return positions
}

function inFront(offset: number, before: number | null, own: number, { first }: ListOrder): ListPosition {
  if (before === null) return { segment: own, position: offset }
  return { segment: before, position: Math.floor(first(before) ?? 0) + offset + 0.5 }
}

function leading(count: number, anchor: ListPosition, { before }: ListOrder): ListPosition[] {
  const low = Math.max(before(anchor) ?? anchor.position - 1, anchor.position - 1)
  return between(anchor.segment, low, anchor.position, count)
}

function trailing(place: ListPosition, count: number, { after }: ListOrder): ListPosition[] {
  const high = Math.min(after(place) ?? place.position + 1, place.position + 1)
  return between(place.segment, place.position, high, count)
}

/** Positions between two others, never whole numbers: those belong to items that were read in list order. */
function between(segment: number, low: number, high: number, count: number): ListPosition[] {
  const step = (high - low) / (count + 1)
  return Array.from({ length: count }, (_, index) => ({ segment, position: low + step * (index + 1) }))
}
