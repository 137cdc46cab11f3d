import { hash } from './random.ts'
import { WORLD_START } from './words.ts'

/**
 * What the orders of one organization follow from. Time is a tick: whole seconds since the sandbox started, always 0 if
 * the sandbox is not live. Nothing is stored: an order at a tick is computed on demand.
 */
export interface OrderSource {
  key: number
  /** Orders that exist at tick 0. */
  originals: number
  establishments: number
}

export interface OrderLife {
  state: string
  /** Epoch seconds, like the other two. Rises with the index. */
  createdAt: number
  updatedAt: number
  deliveredAt: number | null
  /** Changes since the last state was reached. As on some real servers, they do not move `updatedAt`. */
  touches: number
}

const USUAL_PATH = ['pending', 'paid', 'shipped', 'delivered'] as const
const CANCELLED_PATH = ['pending', 'cancelled'] as const
const FIRST_STAGES = [0, 1, 1, 2, 2, 3, 3, 3, 3, 3] as const

const SECONDS_BETWEEN_ORIGINALS = 600
const SECONDS_BETWEEN_NEW = 4
const SECONDS_BETWEEN_CHANGES = 3
const HOUR = 3600

// A salt for each property, so that those of one order do not depend on each other.
const SALT = { created: 1, appears: 2, path: 3, stage: 4, pace: 5, change: 6 }

/** How many orders existed by a tick, deleted ones included. */
export function ordersBy(source: OrderSource, tick: number): number {
  if (tick < 1) return source.originals
  const newest = source.originals + Math.floor((tick - 1) / SECONDS_BETWEEN_NEW)
  return newest + (appearsAt(source, newest) <= tick ? 1 : 0)
}

/** In epoch seconds; rises with the index. */
export function orderCreatedAt(source: OrderSource, index: number): number {
  if (index >= source.originals) return opening(source) + appearsAt(source, index)
  const jitter = hash(source.key, SALT.created, index) % SECONDS_BETWEEN_ORIGINALS
  return WORLD_START + index * SECONDS_BETWEEN_ORIGINALS + jitter
}

/** The state alone, for filters that look at every order. */
export function orderState(source: OrderSource, index: number, tick: number): string {
  const path = pathOf(source, index)
  const stage = firstStage(source, index, path.length) + changesBy(source, index, tick)
  return path[Math.min(stage, path.length - 1)] ?? path[0]
}

export function orderLife(source: OrderSource, index: number, tick: number): OrderLife {
  const path = pathOf(source, index)
  const first = firstStage(source, index, path.length)
  const changes = changesBy(source, index, tick)
  const steps = Math.min(changes, path.length - 1 - first)
  const state = path[first + steps] ?? path[0]
  const createdAt = orderCreatedAt(source, index)
  const pace = HOUR + (hash(source.key, SALT.pace, index) % (11 * HOUR))
  const updatedAt =
    steps === 0
      ? createdAt + first * pace
      : opening(source) + firstChangeAt(source, index) + (steps - 1) * period(source)
  return {
    state,
    createdAt,
    updatedAt,
    deliveredAt: state === 'delivered' ? updatedAt : null,
    touches: changes - steps,
  }
}

/** Epoch seconds of tick 0, after all that happened to the originals. */
function opening(source: OrderSource): number {
  return WORLD_START + source.originals * SECONDS_BETWEEN_ORIGINALS + 48 * HOUR
}

function appearsAt(source: OrderSource, index: number): number {
  if (index < source.originals) return 0
  const jitter = hash(source.key, SALT.appears, index) % SECONDS_BETWEEN_NEW
  return (index - source.originals) * SECONDS_BETWEEN_NEW + 1 + jitter
}

function pathOf(source: OrderSource, index: number): readonly [string, ...string[]] {
  return hash(source.key, SALT.path, index) % 10 === 0 ? CANCELLED_PATH : USUAL_PATH
}

function firstStage(source: OrderSource, index: number, stages: number): number {
  if (index >= source.originals) return 0
  const stage = FIRST_STAGES[hash(source.key, SALT.stage, index) % FIRST_STAGES.length] ?? 0
  return Math.min(stage, stages - 1)
}

/** Every order changes once in this many seconds: of any number of orders one changes every few seconds. */
function period(source: OrderSource): number {
  return Math.max(source.originals, 100) * SECONDS_BETWEEN_CHANGES
}

function firstChangeAt(source: OrderSource, index: number): number {
  return appearsAt(source, index) + 1 + (hash(source.key, SALT.change, index) % period(source))
}

function changesBy(source: OrderSource, index: number, tick: number): number {
  if (tick === 0) return 0
  return Math.max(0, 1 + Math.floor((tick - firstChangeAt(source, index)) / period(source)))
}
