import { dropCollection } from '../core/collections.ts'
import { createForgetting, type Forgetting, isUnused } from '../core/forget.ts'
import type { ConfiguredCollection } from '../core/tables.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import type { Leases } from './leases.ts'
import { hasBelongings, makeConfigured } from './tables/collection.ts'
import { type Patience, runnerOn, type Transact } from './transaction.ts'

export interface ForgettingOptions extends Pick<Patience, 'now' | 'sleep' | 'signal'> {
  /** Their tables are recreated, empty. */
  configured: readonly ConfiguredCollection[]
  connection: Connection
  leases: Leases
  transact: Transact
}

/** Rows of one transaction: few, since it also overwrites them. */
const FORGOTTEN_AT_ONCE = 500

export function createFileForgetting({
  connection,
  leases,
  transact,
  configured,
  ...patience
}: ForgettingOptions): Forgetting {
  // Overwrites deleted rows with zeros.
  connection.pragma('secure_delete = ON')
  return createForgetting({
    ...runnerOn(connection, transact, patience),
    take: (job) =>
      transact(() => {
        const owner = leases.take(job)
        return owner ?? { job, name: `${job.organization} ${job.collection}`, epoch: 0 }
      }),
    release: ({ job }) => transact(() => leases.release(job)),
    batchRows: FORGOTTEN_AT_ONCE,
    dropUnused: (collection) =>
      transact(() => {
        // A user's index or trigger would go with the tables.
        const isDropped = runRule(connection, isUnused(collection)) && !hasBelongings(connection, collection)
        if (isDropped) runRule(connection, dropCollection(SQLITE, collection))
        makeConfigured(connection, configured)
        return isDropped
      }),
  })
}
