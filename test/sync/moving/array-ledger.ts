import { type Ledger, sightingOf } from '../../../src/mirror/placing.ts'
import type { Place } from '../../../src/sync/coverage/account.ts'
import type { Checkpoint, SightedItem, Sighting } from '../../../src/sync/types.ts'

/** What the mirror knows of a walk's keys, in arrays: no rows, no file, fast enough for thousands of walks. */
export interface ArrayLedger {
  sight(from: Checkpoint, ids: readonly number[]): Sighting
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
  const order: Ledger = {
    after: (place) => positionsOf(place)[countUpTo(positionsOf(place), place.position)] ?? null,
    before: (place) => positionsOf(place)[countBelow(positionsOf(place), place.position) - 1] ?? null,
    first: (segment) => segments[segment]?.[0] ?? null,
    distance,
  }

  const ledger: ArrayLedger = {
    answers: 0,
    has: (id) => seen.has(id),
    sight(from, ids) {
      const before = ids.map((id) => seen.get(id))
      return sightingOf(entriesOf(ids.length), before, from, ledger.answers + 1, order)
    },
    save({ pass, why, places, placed }, ids) {
      ledger.answers++
      ids.forEach((id, index) => {
        const place = placed[index]
        const before = seen.get(id)
        if (!place || (why !== 'forward' && places[index])) return
        if (before) drop(positionsOf(before), before.position)
        segments[place.segment] ??= []
        const positions = positionsOf(place)
        positions.splice(countUpTo(positions, place.position), 0, place.position)
        seen.set(id, { pass, segment: place.segment, position: place.position })
      })
    },
  }

  function distance(from: Place, to: Place): number {
    const ends = countUpTo(positionsOf(to), to.position) - countUpTo(positionsOf(from), from.position)
    let between = 0
    for (let segment = from.segment; segment < to.segment; segment++)
      between += segments[segment]?.length ?? 0
    return ends + between
  }

  return ledger
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
