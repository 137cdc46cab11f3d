import { createForgetting, type Forgetting } from '../core/forget.ts'
import { runnerOn } from './driver.ts'
import type { Leases } from './leases.ts'
import type { Patience, Server } from './server/server.ts'

/** Rows of one transaction. */
const FORGOTTEN_AT_ONCE = 5000

export function createServerForgetting(
  server: Server,
  leases: Leases,
  options: Pick<Patience, 'now' | 'signal'>,
): Forgetting {
  return createForgetting({
    ...runnerOn(server, options),
    batchRows: FORGOTTEN_AT_ONCE,
    async take(job) {
      const taken = await leases.take(job, false)
      return taken ? { job, name: `${job.organization} ${job.collection}`, ...taken } : 'a worker'
    },
    release: leases.release,
  })
}
