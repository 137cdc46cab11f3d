import type { Change, Spot } from './list.ts'
import type { Random } from './random.ts'

/** In which ways a list moves for a while; what is there several times happens more often. */
type Motion = readonly [Change['kind'], ...Change['kind'][]]

const OFTEN_NEW: readonly [Motion, ...Motion[]] = [
  ['insert'],
  ['insert', 'insert', 'insert', 'insert many'],
  ['insert', 'insert', 'insert many', 'delete', 'update'],
  ['insert', 'insert', 'insert', 'delete', 'move'],
]

/** In most lists that are refreshed, new items come all the time. */
const REFRESHED = 0.6

const MOTIONS: readonly [Motion, ...Motion[]] = [
  ['insert'],
  ['delete'],
  ['move'],
  ['insert', 'insert', 'delete'],
  ['insert', 'delete', 'move'],
  ['insert', 'delete', 'move', 'list again', 'update', 'respell'],
  ['delete', 'delete many', 'insert', 'list again'],
]

/** Where new items are put in one list: most lists have one place for them. */
type Order = 'front' | 'end' | 'anywhere'

/** Draws changes of one list, phase by phase. */
export function createMotion(random: Random, isRefreshed: boolean) {
  const order: Order = random.pick(['front', 'end', 'anywhere'])
  const motion = random.pick(isRefreshed && random.chance(REFRESHED) ? OFTEN_NEW : MOTIONS)

  function spot(): Spot {
    return order === 'anywhere' ? { place: random.whole(0, 60) } : order
  }

  return (): Change => {
    const kind = random.pick(motion)
    const place = random.whole(0, 60)
    if (kind === 'insert' || kind === 'list again') return { kind, to: spot() }
    if (kind === 'insert many') return { kind, to: spot(), count: random.whole(2, 45) }
    if (kind === 'move') return { kind, place, to: spot() }
    if (kind === 'delete many') return { kind, place: random.pick([0, place]), count: random.whole(2, 40) }
    return { kind, place }
  }
}
