import { createDeletions } from './deletions.ts'
import { createEstablishment, establishmentCreatedAt } from './establishment.ts'
import { createOrder } from './order.ts'
import { type OrderSource, orderCreatedAt, orderState, ordersBy } from './order-life.ts'
import { hash } from './random.ts'

/**
 * One list of one organization. An item has an index for life; it is made from it when it is asked for, so that a million
 * items cost no memory. `tick` is explained at `OrderSource`.
 */
export interface Collection {
  /** Indexes in use by then, the deleted ones included. */
  countAt: (tick: number) => number
  /** Deleted indexes, ascending. */
  deletedAt: (tick: number) => readonly number[]
  /** Epoch seconds, rising with the index. */
  createdAt: (index: number) => number
  itemAt: (index: number, tick: number) => Record<string, unknown>
  /** Null where items have no state: the filter is then unknown. */
  stateAt: ((index: number, tick: number) => string) | null
}

export interface DataOptions {
  seed: number
  /** Number of the organization, from 0. */
  organization: number
  orders: number
  establishments: number
}

export interface Data {
  orders: Collection
  establishments: Collection
}

const SALT = { organization: 301, deletion: 302 }

/** All that one organization lists. It follows from the options alone. */
export function createData({ seed, organization, orders, establishments }: DataOptions): Data {
  const key = hash(SALT.organization, seed, organization)
  return {
    orders: createOrders({ key, originals: orders, establishments }),
    establishments: createEstablishments(key, establishments),
  }
}

function createOrders(source: OrderSource): Collection {
  function victimAt(tick: number): number | null {
    const count = ordersBy(source, tick)
    return count === 0 ? null : hash(source.key, SALT.deletion, tick) % count
  }
  return {
    countAt: (tick) => ordersBy(source, tick),
    deletedAt: createDeletions(victimAt),
    createdAt: (index) => orderCreatedAt(source, index),
    itemAt: (index, tick) => createOrder(source, index, tick),
    stateAt: (index, tick) => orderState(source, index, tick),
  }
}

function createEstablishments(key: number, count: number): Collection {
  return {
    countAt: () => count,
    deletedAt: () => [],
    createdAt: (index) => establishmentCreatedAt(key, index),
    itemAt: (index) => createEstablishment(key, index),
    stateAt: null,
  }
}
