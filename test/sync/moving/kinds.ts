import { MOVEMENTS, type MovingList, type Streams } from './moving-list.ts'

/** A way in which a list moves. */
export interface Kind {
  streams: Streams
  /** Whether the walk stands still for an hour at some point, while the list goes on. */
  isInterrupted?: boolean
  /** A job that runs at the same points of every walk. */
  hasJob?: boolean
  /** Pages of the list, where not 4,000. */
  pages?: number
}

const ONE = 1
const TENTH = 0.1

/** One event a minute each, but for what says otherwise. */
export const KINDS: Record<string, Kind> = {
  still: { streams: {} },
  append: { streams: { append: ONE } },
  front: { streams: { front: ONE } },
  'random place': { streams: { insert: ONE } },
  deletions: { streams: { remove: ONE } },
  'deletions + front': { streams: { remove: ONE, front: ONE } },
  'deletions + append': { streams: { remove: ONE, append: ONE } },
  'purge oldest + append': { streams: { purge: ONE, append: ONE } },
  'deletions + random place': { streams: { remove: ONE, insert: ONE } },
  all: { streams: { front: ONE, append: ONE, insert: ONE, remove: ONE } },
  'all + an hour': { streams: { front: ONE, append: ONE, insert: ONE, remove: ONE }, isInterrupted: true },
  'deletions + an hour': { streams: { remove: ONE }, isInterrupted: true },
  'still + an hour': { streams: {}, isInterrupted: true },
  'updates to front': { streams: { toFront: ONE } },
  'front + deletions + updates to front': { streams: { front: ONE, remove: ONE, toFront: ONE } },
  'updates to end': { streams: { toEnd: ONE } },
  'updates anywhere': { streams: { toAnywhere: ONE } },
  'bursts, each ten minutes': { streams: { burst: TENTH } },
  'swaps, each ten minutes': { streams: { swap: TENTH } },
  resonance: { streams: {}, hasJob: true },
  're-sorted by the minute': { streams: { sort: ONE }, pages: 400 },
}

/** Lets the job of a resonance happen: half-way, and later. */
export function jobAt(list: MovingList, pages: number, reading: number | null, done: Set<string>): void {
  if (reading === null) return
  if (reading >= pages / 2 && !done.has('half')) {
    done.add('half')
    list.ids.splice(0, 20)
    for (let added = 0; added < 20; added++) MOVEMENTS.append(list)
  }
  if (reading >= (pages * 3) / 4 && !done.has('later')) {
    done.add('later')
    for (let added = 0; added < 20; added++) MOVEMENTS.front(list)
    list.ids.splice(-20)
  }
}
