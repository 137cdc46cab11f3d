/** A list of numbers that moves while it is read; an added item gets the next number. */
export interface MovingList {
  ids: number[]
  /** The number that the next item gets. */
  next: number
  random: () => number
}

export type Movement = (list: MovingList) => void

const somewhere = ({ ids, random }: MovingList): number => Math.floor(random() * ids.length)

function taken(list: MovingList): number[] {
  return list.ids.length > 0 ? list.ids.splice(somewhere(list), 1) : []
}

const some = ({ random }: MovingList, most: number): number[] =>
  Array.from({ length: 1 + Math.floor(random() * most) })

/** What may happen to a list; each is one event. */
export const MOVEMENTS = {
  front: (list) => list.ids.unshift(list.next++),
  append: (list) => list.ids.push(list.next++),
  insert: (list) => list.ids.splice(Math.floor(list.random() * (list.ids.length + 1)), 0, list.next++),
  remove: taken,
  purge: ({ ids }) => ids.shift(),
  toFront: (list) => list.ids.unshift(...taken(list)),
  toEnd: (list) => list.ids.push(...taken(list)),
  toAnywhere: (list) => {
    const item = taken(list)
    list.ids.splice(Math.floor(list.random() * (list.ids.length + 1)), 0, ...item)
  },
  /** Up to thirty items leave and as many join the end, at once: the total does not change. */
  swap: (list) => {
    for (const _ of some(list, 30)) {
      taken(list)
      list.ids.push(list.next++)
    }
  },
  /** Up to sixty items come, or leave, at one place. */
  burst: (list) => {
    const many = some(list, 60)
    const at = somewhere(list)
    if (list.random() < 0.5) list.ids.splice(at, many.length)
    else list.ids.splice(at, 0, ...many.map(() => list.next++))
  },
  /** The same items in another order. */
  sort: ({ ids, random }) => {
    for (let last = ids.length - 1; last > 0; last--) {
      const other = Math.floor(random() * (last + 1))
      const item = ids[last] ?? 0
      ids[last] = ids[other] ?? 0
      ids[other] = item
    }
  },
} satisfies Record<string, Movement>

/** Random movements with their rates a minute. */
export type Streams = Partial<Record<keyof typeof MOVEMENTS, number>>

/** Lets time pass in the list's streams, in seconds; their events happen in order. */
export function createPassing(list: MovingList, streams: Streams): (seconds: number) => void {
  let now = 0
  const wait = (perMinute: number) => (-Math.log(1 - list.random()) * 60) / perMinute
  const next = Object.entries(streams).map(([name, perMinute]) => ({
    move: MOVEMENTS[name as keyof typeof MOVEMENTS],
    perMinute,
    at: wait(perMinute),
  }))
  const soonest = () =>
    next.reduce((a, b) => (b.at < a.at ? b : a), { move: () => {}, perMinute: 1, at: Infinity })
  return (seconds) => {
    now += seconds
    for (let stream = soonest(); stream.at <= now; stream = soonest()) {
      stream.move(list)
      stream.at += wait(stream.perMinute)
    }
  }
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
