import type { Collection } from './data.ts'
import { allBut, exactly, firstWhere, type Selection, startingAt } from './selection.ts'

/** What a request asks for; null: no filter. */
export interface Filters {
  states: readonly string[] | null
  /** Epoch seconds, inclusive. */
  createdFrom: number | null
}

const REMEMBERED_SCANS = 8

/** Finds the items of a list that pass the filters. Only a filter by state looks at every item, once a tick. */
export function createFinder(collection: Collection): (filters: Filters, tick: number) => Selection {
  const scans = new Map<string, { tick: number; selection: Selection }>()

  function selectStates(states: readonly string[], tick: number): Selection {
    const name = JSON.stringify(states)
    const known = scans.get(name)
    if (known?.tick === tick) return known.selection
    const selection = scanStates(collection, new Set(states), tick)
    scans.delete(name)
    scans.set(name, { tick, selection })
    const [oldest] = scans.keys()
    if (scans.size > REMEMBERED_SCANS && oldest !== undefined) scans.delete(oldest)
    return selection
  }

  return ({ states, createdFrom }, tick) => {
    const count = collection.countAt(tick)
    const selection =
      states === null || collection.stateAt === null
        ? allBut(count, collection.deletedAt(tick))
        : selectStates(states, tick)
    if (createdFrom === null) return selection
    return startingAt(
      selection,
      firstWhere(count, (index) => collection.createdAt(index) >= createdFrom),
    )
  }
}

function scanStates(
  { countAt, deletedAt, stateAt }: Collection,
  states: Set<string>,
  tick: number,
): Selection {
  const listed = allBut(countAt(tick), deletedAt(tick))
  const indexes = Uint32Array.from({ length: listed.total }, (_, position) => listed.indexAt(position))
  return exactly(indexes.filter((index) => stateAt !== null && states.has(stateAt(index, tick))))
}
