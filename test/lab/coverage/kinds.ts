import { MOVEMENTS, type MovingList, type Streams } from './moving-list.ts'

/** A way in which a list moves. */
export interface Kind {
  streams: Streams
  /** Whether the walk pauses for an hour at some point, while the list moves. */
  isInterrupted?: boolean
  /** A job that runs at the same points of every walk. */
  hasJob?: boolean
  /** The share of time between the server's count and its page: movements then show in the page only. */
  late?: number
  /** The share of neighbours with equal sort keys, whose order is random in each answer. */
  ties?: number
  /** Pages of the list, if not 4,000. */
  pages?: number
}

const ONE = 1
const TENTH = 0.1

function all(perMinute: number): Streams {
  return { front: perMinute, append: perMinute, insert: perMinute, remove: perMinute }
}

/** One event a minute each, unless the name says otherwise. */
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
  all: { streams: all(ONE) },
  'all + an hour': { streams: all(ONE), isInterrupted: true },
  'deletions + an hour': { streams: { remove: ONE }, isInterrupted: true },
  'still + an hour': { streams: {}, isInterrupted: true },
  'all, three a minute each': { streams: all(3) },
  'all, ten a minute each': { streams: all(10) },
  'all, an event every second page of 60': { streams: all(7.5), pages: 60 },
  'all, 5 % between count and page': { streams: all(ONE), late: 0.05 },
  'updates to front': { streams: { toFront: ONE } },
  'front + deletions + updates to front': { streams: { front: ONE, remove: ONE, toFront: ONE } },
  'updates to end': { streams: { toEnd: ONE } },
  'updates anywhere': { streams: { toAnywhere: ONE } },
  'bursts, each ten minutes': { streams: { burst: TENTH } },
  'swaps, each ten minutes': { streams: { swap: TENTH } },
  resonance: { streams: {}, hasJob: true },
  'ties in 5 % of pairs, still': { streams: {}, ties: 0.05, pages: 400 },
  'ties in all pairs, still': { streams: {}, ties: 1, pages: 400 },
  're-sorted by the minute': { streams: { sort: ONE }, pages: 400 },
}

export function kindNamed(name: string): Kind {
  const kind = KINDS[name]
  if (!kind) throw new Error(`there is no kind ${name}; there are: ${Object.keys(KINDS).join('; ')}`)
  return kind
}

/** The job of a resonance, before a walk reads this page of so many: half-way, and later. `done`: what it did in this walk. */
export function runJob(list: MovingList, pages: number, page: number | null, done: Set<string>): void {
  if (page === null) return
  if (page >= pages / 2 && !done.has('half')) {
    done.add('half')
    list.ids.splice(0, 20)
    for (let added = 0; added < 20; added++) MOVEMENTS.append(list)
  }
  if (page >= (pages * 3) / 4 && !done.has('later')) {
    done.add('later')
    for (let added = 0; added < 20; added++) MOVEMENTS.front(list)
    list.ids.splice(-20)
  }
}
