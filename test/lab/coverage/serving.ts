import type { MovingList } from './moving-list.ts'

/** A page of the server, which counts first and then reads. */
export interface ServedPage {
  ids: readonly number[]
  total: number
}

/** Whether two neighbours have equal sort keys: by the pair, so always the same if the list does not move. */
export type Ties = (pair: number) => boolean

export function drawTies(share: number, random: () => number, pairs: number): Ties {
  const tied = Array.from({ length: pairs }, () => random() < share)
  return (pair) => tied[pair] === true
}

/** The items from `start` to before `end`; neighbours with equal keys in random order. */
export function slice({ ids, random }: MovingList, start: number, end: number, ties: Ties | null): number[] {
  if (!ties) return ids.slice(start, end)
  const from = start - (start % 2)
  const drawn: number[] = []
  for (let index = from; index < end; index += 2) {
    const pair = ids.slice(index, index + 2)
    drawn.push(...(ties(index / 2) && random() < 0.5 ? pair.toReversed() : pair))
  }
  return drawn.slice(start - from, end - from)
}
