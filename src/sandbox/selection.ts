/** An ascending list of indexes that is never written out: a lookup costs the same everywhere in it. */
export interface Selection {
  total: number
  indexAt: (position: number) => number
  /** The position of the first member from `index` on. */
  positionOf: (index: number) => number
}

/** All indexes below `count` but the `gaps`, which are sorted and below `count` too. */
export function allBut(count: number, gaps: readonly number[]): Selection {
  return {
    total: count - gaps.length,
    indexAt: (position) => position + firstWhere(gaps.length, (at) => (gaps[at] ?? 0) - at > position),
    positionOf: (index) => index - firstWhere(gaps.length, (at) => (gaps[at] ?? 0) >= index),
  }
}

/** The same members, the last one first. */
export function backwards({ total, indexAt }: Selection): Pick<Selection, 'total' | 'indexAt'> {
  return { total, indexAt: (position) => indexAt(total - 1 - position) }
}

export function exactly(indexes: Uint32Array): Selection {
  return {
    total: indexes.length,
    indexAt: (position) => indexes[position] ?? 0,
    positionOf: (index) => firstWhere(indexes.length, (at) => (indexes[at] ?? 0) >= index),
  }
}

/** The members of a selection from `index` on. */
export function startingAt(selection: Selection, index: number): Selection {
  const skipped = selection.positionOf(index)
  return {
    total: selection.total - skipped,
    indexAt: (position) => selection.indexAt(position + skipped),
    positionOf: (other) => Math.max(0, selection.positionOf(other) - skipped),
  }
}

/** The first of 0 to `length` - 1 for which `isReached` holds, else `length`. It must hold for all that follow. */
export function firstWhere(length: number, isReached: (at: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}
