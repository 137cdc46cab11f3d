import type { Place } from '../sync/coverage/account.ts'
import type { Checkpoint, SightedItem, Sighting } from '../sync/types.ts'

/** What is known of the order in which a walk's items stand. */
export interface Ledger {
  /** The position next to a place within its segment, and the first one of a segment; null where nothing stands there. */
  after(place: Place): number | null
  before(place: Place): number | null
  first(segment: number): number | null
  /** How many keys stand behind the first place, up to the second and with it. */
  distance(from: Place, to: Place): number
}

/**
 * How the entries of an answer stand to what the walk has seen: `before` says where each stood and in which pass, `own`
 * is the number that the answer will have in the ledger.
 */
export function sightingOf(
  entries: SightedItem[],
  before: readonly ((Place & { pass: number }) | undefined)[],
  { pass, ask }: Checkpoint,
  own: number,
  ledger: Ledger,
): Sighting {
  const why = ask?.why ?? 'forward'
  const places = before.map((place) => (place?.pass === pass ? place : null))
  return {
    ordinal: own,
    pass,
    why,
    entries,
    newToWalk: before.filter((place) => place === undefined).length,
    newToPass: places.filter((place) => place === null).length,
    places,
    placed:
      why === 'forward'
        ? places.map((_, position) => ({ segment: own, position }))
        : placeFound(places, ledger, ask?.before ?? null, own),
    known: ask?.until ? lastKnown(places, ask.until, ledger) : null,
  }
}

/**
 * The last known entry at or before a place. One whose neighbour on the page stands in its segment too is preferred: an
 * item that was moved stands elsewhere than the ledger says.
 */
function lastKnown(places: readonly (Place | null)[], until: Place, { distance }: Ledger): Sighting['known'] {
  const known = [...places.keys()].filter((entry) => isUpTo(places[entry], until))
  const entry = known.findLast((at) => places[at]?.segment === places[at - 1]?.segment) ?? known.at(-1)
  const place = entry === undefined ? null : places[entry]
  return entry === undefined || !place ? null : { entry, distance: distance(place, until) }
}

function isUpTo(place: Place | null | undefined, until: Place): boolean {
  if (!place) return false
  return (
    place.segment < until.segment || (place.segment === until.segment && place.position <= until.position)
  )
}

/**
 * Places the keys of an answer that was asked for to find something: a known one stays where it is, a new one stands
 * behind the one before it on the page, else before the next one that is known. Those of a page that holds none that is
 * known stand before the segment that is named, or make one of their own.
 */
function placeFound(
  known: readonly (Place | null)[],
  neighbours: Ledger,
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

function inFront(offset: number, before: number | null, own: number, { first }: Ledger): Place {
  if (before === null) return { segment: own, position: offset }
  return { segment: before, position: Math.floor(first(before) ?? 0) + offset + 0.5 }
}

function leading(count: number, anchor: Place, { before }: Ledger): Place[] {
  const low = Math.max(before(anchor) ?? anchor.position - 1, anchor.position - 1)
  return between(anchor.segment, low, anchor.position, count)
}

function behind(place: Place, count: number, { after }: Ledger): Place[] {
  const high = Math.min(after(place) ?? place.position + 1, place.position + 1)
  return between(place.segment, place.position, high, count)
}

/** Never on a whole number: those are for keys that were read there first. */
function between(segment: number, low: number, high: number, count: number): Place[] {
  const step = (high - low) / (count + 1)
  return Array.from({ length: count }, (_, index) => ({ segment, position: low + step * (index + 1) }))
}
