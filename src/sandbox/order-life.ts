import { hash, WORLD_START } from './words.ts'

/**
 * What the orders of one organization follow from. Time is a tick: whole seconds of the made-up world since the sandbox
 * started, always 0 if the sandbox is not live. Nothing is stored: an order at a tick is computed on demand.
 */
export interface OrderSource {
  key: number
  /** Orders that exist at tick 0. */
  originals: number
  establishments: number
  /** Orders come and change. Otherwise each is in its last state. */
  live: boolean
}

export interface OrderLife {
  state: string
  /** Epoch seconds, like the other two. Rises with the index. */
  createdAt: number
  updatedAt: number
  deliveredAt: number | null
  /** Changes beside those of the state. As on some real servers, they do not move `updatedAt`. */
  touches: number
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const USUAL_PATH = ['pending', 'paid', 'shipped', 'delivered'] as const
const CANCELLED_PATH = ['pending', 'cancelled'] as const
/** The stages in which an order may stay for good: not all are paid or delivered one day. */
const LAST_STAGES = [0, 1, 1, 2, 2, 3, 3, 3, 3, 3] as const

/** Seconds from each stage to the next: five minutes, an hour and a day after the order came. Medians. */
const TO_NEXT_STAGE = [5 * MINUTE, 55 * MINUTE, 23 * HOUR] as const
/** Percent of the orders, and median of the seconds after the order came. */
const TOUCHES = [
  { chance: 50, seconds: 3 * DAY },
  { chance: 15, seconds: 20 * DAY },
] as const
/** Standard deviation of the logarithm of these seconds. */
const SPREAD = 0.8

/** The orders of a live list are younger, so that more of them still change. */
const SECONDS_BETWEEN = { still: 600, live: 20 }

// A salt for each property, so that those of one order do not depend on each other.
const SALT = { created: 1, path: 3, stage: 4, step: 5, touch: 6, isTouched: 7 }

/** How many orders existed by a tick, deleted ones included. */
export function ordersBy(source: OrderSource, tick: number): number {
  if (!source.live || tick < 1) return source.originals
  const newest = source.originals + Math.floor((tick - 1) / spacing(source))
  return newest + (ageAt(source, newest, tick) > 0 ? 1 : 0)
}

/** Epoch seconds of tick 0. The originals were created before, all others later. */
export function openingOf(source: Pick<OrderSource, 'originals' | 'live'>): number {
  return WORLD_START + source.originals * spacing(source)
}

/** In epoch seconds; rises with the index. An order is listed from the next second on. */
export function orderCreatedAt(source: OrderSource, index: number): number {
  const between = spacing(source)
  return WORLD_START + index * between + (hash(source.key, SALT.created, index) % between)
}

export function orderLife(source: OrderSource, index: number, tick: number): OrderLife {
  const path = stagesOf(source, index)
  const age = ageAt(source, index, tick)
  const { stage, after } = stageAt(source, index, age)
  const state = path[stage] ?? path[0]
  const createdAt = orderCreatedAt(source, index)
  const updatedAt = createdAt + after
  return {
    state,
    createdAt,
    updatedAt,
    deliveredAt: state === 'delivered' ? updatedAt : null,
    touches: source.live ? touchesAt(source, index, age) : 0,
  }
}

function spacing({ live }: Pick<OrderSource, 'live'>): number {
  return live ? SECONDS_BETWEEN.live : SECONDS_BETWEEN.still
}

function ageAt(source: OrderSource, index: number, tick: number): number {
  if (!source.live) return Number.POSITIVE_INFINITY
  return openingOf(source) + tick - orderCreatedAt(source, index)
}

function stagesOf(source: OrderSource, index: number): readonly [string, ...string[]] {
  return hash(source.key, SALT.path, index) % 10 === 0 ? CANCELLED_PATH : USUAL_PATH
}

interface Stage {
  stage: number
  /** Seconds after the order came. */
  after: number
}

function stageAt(source: OrderSource, index: number, age: number): Stage {
  const last = Math.min(
    LAST_STAGES[hash(source.key, SALT.stage, index) % LAST_STAGES.length] ?? 0,
    stagesOf(source, index).length - 1,
  )
  let after = 0
  for (const [stage, seconds] of TO_NEXT_STAGE.entries()) {
    const next = after + spread(seconds, hash(source.key, SALT.step, index, stage))
    if (stage === last || next > age) return { stage, after }
    after = next
  }
  return { stage: last, after }
}

function touchesAt(source: OrderSource, index: number, age: number): number {
  return TOUCHES.filter(
    ({ chance, seconds }, touch) =>
      hash(source.key, SALT.isTouched, index, touch) % 100 < chance &&
      spread(seconds, hash(source.key, SALT.touch, index, touch)) <= age,
  ).length
}

/** Whole seconds, log-normal around the median, as they follow from 32 random bits. */
function spread(median: number, bits: number): number {
  // The sum of four random bytes is nearly normal: 510 on average, with a standard deviation of 147.8.
  const sum = (bits & 255) + ((bits >>> 8) & 255) + ((bits >>> 16) & 255) + (bits >>> 24)
  return Math.round(median * Math.exp((SPREAD * (sum - 510)) / 147.8))
}
