export interface Spread {
  median: number
  least: number
  most: number
}

/** The middle one, or the mean of the middle two; of no value at all there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.floor((sorted.length - 1) / 2)]
  if (upper === undefined || lower === undefined) throw new RangeError('there is no median of nothing')
  return (lower + upper) / 2
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) }
}

/**
 * Each of ours against the other's of the same round: what slowed the machine down for a while slowed both. Both have as
 * many rounds.
 */
export function ratiosOf(ours: readonly number[], others: readonly number[]): number[] {
  if (ours.length !== others.length) throw new RangeError('ours and the others have not as many rounds')
  return ours.map((value, round) => value / (others[round] ?? Number.NaN))
}

/**
 * What one of `count` equal slices of a row of moments took for each step in it, as a mean. Where there are fewer steps
 * than slices, there are as many slices as steps.
 */
export function meanStepOfSlices(moments: readonly number[], count: number): number[] {
  const steps = moments.length - 1
  const slices = Math.max(1, Math.min(count, steps))
  const edges = Array.from({ length: slices + 1 }, (_, slice) => Math.round((slice * steps) / slices))
  return edges.slice(1).map((end, slice) => {
    const start = edges[slice] ?? 0
    return ((moments[end] ?? 0) - (moments[start] ?? 0)) / (end - start)
  })
}
