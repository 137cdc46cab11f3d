import { placeFound } from '../../../src/mirror/placing.ts'
import type { Place } from '../../../src/sync/coverage/account.ts'
import type { Checkpoint, Page, Sighting, SightedItem } from '../../../src/sync/types.ts'

/** What the mirror knows of a walk's keys, in arrays: no rows, no file, fast enough for thousands of walks. */
export interface ArrayLedger {
  sight(from: Checkpoint, page: Page, ids: readonly number[]): Sighting
  save(sighting: Sighting, ids: readonly number[]): void
  /** Whether the walk saw an item, in any pass. */
  has(id: number): boolean
  answers: number
}

export function createArrayLedger(): ArrayLedger {
  const seen = new Map<number, Place & { pass: number }>()
  /** Positions in use, in their order, by segment. */
  const segments: number[][] = []
  const positionsOf = ({ segment }: { segment: number }) => segments[segment] ?? []

  const ledger: ArrayLedger = {
    answers: 0,
    has: (id) => seen.has(id),
    sight({ pass, ask }, page, ids) {
      const why = ask?.why ?? 'forward'
      const before = ids.map((id) => seen.get(id))
      const places = before.map((place) => (place?.pass === pass ? place : null))
      const own = ledger.answers + 1
      const neighbours = {
        after: (place: Place) => positionsOf(place)[countUpTo(positionsOf(place), place.position)] ?? null,
        before: (place: Place) => positionsOf(place)[countBelow(positionsOf(place), place.position) - 1] ?? null,
        first: (segment: number) => segments[segment]?.[0] ?? null,
      }
      return {
        pass,
        why,
        entries: entriesOf(ids.length),
        newToWalk: before.filter((place) => !place).length,
        newToPass: places.filter((place) => !place).length,
        places,
        placed:
          why === 'forward'
            ? ids.map((_, position) => ({ segment: own, position }))
            : placeFound(places, neighbours, ask?.before ?? null, own),
        known: ask?.until ? lastKnown(places, ask.until, distance) : null,
      }
    },
    save({ pass, placed }, ids) {
      ledger.answers++
      ids.forEach((id, index) => {
        const place = placed[index]
        const before = seen.get(id)
        if (!place || (before && before.pass === pass && before.segment === place.segment && before.position === place.position))
          return
        if (before) drop(positionsOf(before), before.position)
        const positions = (segments[place.segment] ??= [])
        positions.splice(countUpTo(positions, place.position), 0, place.position)
        seen.set(id, { pass, segment: place.segment, position: place.position })
      })
    },
  }

  function distance(from: Place, to: Place): number {
    const ends = countUpTo(positionsOf(to), to.position) - countUpTo(positionsOf(from), from.position)
    let between = 0
    for (let segment = from.segment; segment < to.segment; segment++) between += segments[segment]?.length ?? 0
    return ends + between
  }

  return ledger
}

export function lastKnown(
  places: readonly (Place | null)[],
  until: Place,
  distance: (from: Place, to: Place) => number,
): Sighting['known'] {
  const isBefore = (place: Place | null | undefined) =>
    place != null &&
    (place.segment < until.segment || (place.segment === until.segment && place.position <= until.position))
  const known = [...places.keys()].filter((index) => isBefore(places[index]))
  const entry = known.findLast((index) => places[index]?.segment === places[index - 1]?.segment) ?? known.at(-1)
  const place = entry === undefined ? null : places[entry]
  return entry === undefined || !place ? null : { entry, distance: distance(place, until) }
}

function drop(positions: number[], position: number): void {
  positions.splice(countBelow(positions, position), 1)
}

function countUpTo(positions: readonly number[], position: number): number {
  const index = positions.findIndex((other) => other > position)
  return index === -1 ? positions.length : index
}

function countBelow(positions: readonly number[], position: number): number {
  const index = positions.findIndex((other) => other >= position)
  return index === -1 ? positions.length : index
}

const ENTRIES = new Map<number, SightedItem[]>()

/** As many entries as there are; the accounts ask for no more of them. */
function entriesOf(count: number): SightedItem[] {
  const entries = ENTRIES.get(count) ?? Array.from({ length: count }, () => ENTRY)
  ENTRIES.set(count, entries)
  return entries
}

const ENTRY: SightedItem = { item: { text: '', plain: null, value: null }, mark: '', key: [] }
