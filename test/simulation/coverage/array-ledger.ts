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
  /** By id: ids are whole numbers without large holes. */
  const seen: (Place & { pass: number })[] = []
  /** Positions in use, in their order, by segment. */
  const segments: number[][] = []
  const positionsOf = ({ segment }: { segment: number }) => segments[segment] ?? []
  const order: Ledger = {
    after: (place) => positionsOf(place)[countUpTo(positionsOf(place), place.position)] ?? null,
    before: (place) => positionsOf(place)[countBelow(positionsOf(place), place.position) - 1] ?? null,
    first: (segment) => segments[segment]?.[0] ?? null,
    distance,
  }

  function put(id: number, { segment, position }: Place, pass: number): void {
    const before = seen[id]
    if (before) drop(positionsOf(before), before.position)
    const positions = segments[segment] ?? []
    segments[segment] = positions
    insert(positions, position)
    seen[id] = { pass, segment, position }
  }

  function distance(from: Place, to: Place): number {
    const ends = countUpTo(positionsOf(to), to.position) - countUpTo(positionsOf(from), from.position)
    let between = 0
    for (let segment = from.segment; segment < to.segment; segment++)
      between += segments[segment]?.length ?? 0
    return ends + between
  }

  const ledger: ArrayLedger = {
    answers: 0,
    has: (id) => seen[id] !== undefined,
    sight(from, ids) {
      const before = ids.map((id) => seen[id])
      return sightingOf(entriesOf(ids.length), before, from, ledger.answers + 1, order)
    },
    save({ pass, why, places, placed }, ids) {
      ledger.answers++
      for (const [index, id] of ids.entries()) {
        const place = placed[index]
        if (place && (why === 'forward' || !places[index])) put(id, place, pass)
      }
    },
  }
  return ledger
}

/** Nearly always it is the last one. */
function insert(positions: number[], position: number): void {
  const last = positions.at(-1)
  if (last === undefined || last <= position) positions.push(position)
  else positions.splice(countUpTo(positions, position), 0, position)
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

const ENTRY: SightedItem = { item: { text: '', value: null }, mark: '', key: [] }
