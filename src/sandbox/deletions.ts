import { firstWhere } from './selection.ts'

const SECONDS_BETWEEN_DELETIONS = 30

/**
 * The indexes deleted by a tick, sorted: one every half minute. `choose` names the victim of the deletion at a tick, or null.
 * They are remembered from call to call, since each follows from the list as it was at its own moment.
 */
export function createDeletions(
  choose: (tick: number) => number | null,
): (tick: number) => readonly number[] {
  let deleted: number[] = []
  let reached = 0
  return (tick) => {
    // A clock that was set back gets the list of that moment.
    if (tick < reached) [deleted, reached] = [[], 0]
    for (; reached + SECONDS_BETWEEN_DELETIONS <= tick; reached += SECONDS_BETWEEN_DELETIONS) {
      insertSorted(deleted, choose(reached + SECONDS_BETWEEN_DELETIONS))
    }
    return deleted
  }
}

function insertSorted(sorted: number[], value: number | null): void {
  if (value === null) return
  const place = firstWhere(sorted.length, (at) => (sorted[at] ?? 0) >= value)
  if (sorted[place] !== value) sorted.splice(place, 0, value)
}
