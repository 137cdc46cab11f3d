import { createForgetting, type Forgetting } from '../core/forget.ts'
import type { Connection } from './driver.ts'
import type { Leases } from './leases.ts'
import { type Patience, runnerOn, type Transact } from './transaction.ts'

export interface ForgettingOptions extends Pick<Patience, 'now' | 'sleep' | 'signal'> {
  connection: Connection
  leases: Leases
  transact: Transact
}

/** Rows of one transaction: some tens of milliseconds. */
const FORGOTTEN_AT_ONCE = 500

export function createFileForgetting({
  connection,
  leases,
  transact,
  ...patience
}: ForgettingOptions): Forgetting {
  return createForgetting({
    ...runnerOn(connection, transact, patience),
    take: (job) =>
      transact(() => {
        const owner = leases.take(job)
        return owner ?? { job, name: `${job.organization} ${job.collection}`, epoch: 0 }
      }),
    release: ({ job }) => transact(() => leases.release(job)),
    batchRows: FORGOTTEN_AT_ONCE,
  })
}
