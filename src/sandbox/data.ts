import { createEstablishment, createOrder, establishmentCreatedAt } from './items.ts'
import { type OrderSource, orderCreatedAt, orderLife, ordersBy } from './order-life.ts'
import { createDice, hash, uuid } from './words.ts'

/**
 * One list of one organization. An item keeps its index for life, and is computed from it on demand: a million items
 * cost 4 MB. For `tick` see `OrderSource`.
 */
export interface Collection {
  /** How many indexes are in use by then, the deleted ones included. */
  countAt: (tick: number) => number
  /** Deleted indexes. */
  deletedAt: (tick: number) => ReadonlySet<number>
  /** Epoch seconds, rising with the index. */
  createdAt: (index: number) => number
  /** Epoch seconds. */
  updatedAt: (index: number, tick: number) => number
  itemAt: (index: number, tick: number) => Record<string, unknown>
  /** Null where items have no state: such a list ignores the filter. */
  stateAt: ((index: number, tick: number) => string) | null
}

export interface DataOptions {
  seed: number
  /** Number of the organization, from 0. */
  organization: number
  orders: number
  establishments: number
  /** See `OrderSource`. */
  live: boolean
}

const SALT = { organization: 301, deletion: 302 }

/** The lists of one organization. They follow from the options alone. */
export function createData({ seed, organization, orders, establishments, live }: DataOptions) {
  const key = hash(SALT.organization, seed, organization)
  return {
    orders: createOrders({ key, originals: orders, establishments, live }),
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
    updatedAt: (index, tick) => orderLife(source, index, tick).updatedAt,
    itemAt: (index, tick) => createOrder(source, index, tick),
    stateAt: (index, tick) => orderLife(source, index, tick).state,
  }
}

function createEstablishments(key: number, count: number): Collection {
  return {
    countAt: () => count,
    deletedAt: () => new Set(),
    createdAt: (index) => establishmentCreatedAt(key, index),
    updatedAt: (index) => establishmentCreatedAt(key, index),
    itemAt: (index) => createEstablishment(key, index),
    stateAt: null,
  }
}

const SECONDS_BETWEEN_DELETIONS = 300

/**
 * Returns the indexes that are deleted by a tick: one every five minutes. `choose` names the one that is deleted
 * at a tick, or null. Deletions are kept between calls, since each depends on the list at its own moment.
 */
function createDeletions(choose: (tick: number) => number | null): (tick: number) => ReadonlySet<number> {
  let deleted = new Set<number>()
  let reached = 0
  return (tick) => {
    // The clock was set back.
    if (tick < reached) [deleted, reached] = [new Set(), 0]
    for (; reached + SECONDS_BETWEEN_DELETIONS <= tick; reached += SECONDS_BETWEEN_DELETIONS) {
      const victim = choose(reached + SECONDS_BETWEEN_DELETIONS)
      if (victim !== null) deleted.add(victim)
    }
    return deleted
  }
}

export interface Organization {
  id: string
  name: string
  /** The token of the only member. It is visibly made up. */
  token: string
}

const NAMES = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'soylent', 'tyrell', 'wonka'] as const
const ORGANIZATION_SALT = { id: 401, token: 402 }
const TOKEN_LENGTH = 40

/** The organizations of a seed, each with the token of its own user. */
export function createOrganizations(count: number, seed: number): Organization[] {
  return Array.from({ length: count }, (_, number) => {
    const name = NAMES[number] ?? `org-${number + 1}`
    const id = uuid(createDice(hash(ORGANIZATION_SALT.id, seed, number)))
    return { id, name, token: createToken(name, number, seed) }
  })
}

/** In Laravel Sanctum's form: the number of the token, a bar, 40 letters and digits. */
function createToken(name: string, number: number, seed: number): string {
  const word = name.charAt(0).toUpperCase() + name.slice(1).replace('-', '')
  const start = `sandbox${word}MadeUp`
  return `${number + 1}|${start}${createDice(hash(ORGANIZATION_SALT.token, seed, number)).digits(TOKEN_LENGTH - start.length)}`
}
