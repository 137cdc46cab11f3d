import type { Place } from '../sync/coverage/account.ts'

/** What stands next to a place within its segment; null where nothing does. */
export interface Neighbours {
  after(place: Place): number | null
  before(place: Place): number | null
  first(segment: number): number | null
}

/**
 * Places the keys of an answer that was asked for to find something: a known one stays where it is, a new one stands
 * behind the one before it on the page, else before the next one that is known. Those of a page that holds none that is
 * known stand before the segment that is named, or make one of their own.
 */
export function placeFound(
  known: readonly (Place | null)[],
  neighbours: Neighbours,
  before: number | null,
  own: number,
): Place[] {
  const first = known.findIndex((place) => place !== null)
  const anchor = known[first]
  if (!anchor) return known.map((_, index) => inFront(index - known.length, before, own, neighbours))
  const placed = leading(first, anchor, neighbours)
  for (let index = first; index < known.length; ) {
    const here = known[index]
    if (here) {
      placed.push(here)
      index++
      continue
    }
    const until = known.findIndex((place, at) => at > index && place !== null)
    const end = until === -1 ? known.length : until
    placed.push(...behind(placed.at(-1) ?? anchor, end - index, neighbours))
    index = end
  }
  return placed
}

function inFront(offset: number, before: number | null, own: number, { first }: Neighbours): Place {
  if (before === null) return { segment: own, position: offset }
  return { segment: before, position: Math.floor(first(before) ?? 0) + offset + 0.5 }
}

function leading(count: number, anchor: Place, { before }: Neighbours): Place[] {
  const low = Math.max(before(anchor) ?? anchor.position - 1, anchor.position - 1)
  return between(anchor.segment, low, anchor.position, count)
}

function behind(place: Place, count: number, { after }: Neighbours): Place[] {
  const high = Math.min(after(place) ?? place.position + 1, place.position + 1)
  return between(place.segment, place.position, high, count)
}

/** Never on a whole number: those are for keys that were read there first. */
function between(segment: number, low: number, high: number, count: number): Place[] {
  const step = (high - low) / (count + 1)
  return Array.from({ length: count }, (_, index) => ({ segment, position: low + step * (index + 1) }))
}
