import { createForgetting } from '../../store/core/forget.ts'
import { createLeases } from '../../store/core/leases.ts'
import { runnerOn } from '../../store/postgres/driver.ts'
import type { WorkQueue } from '../../store/postgres/queue.ts'
import { claimAddressOn, openPostgresStore } from '../../store/postgres/store.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { OpenMirror, OpenOptions, Sharing } from '../mirror.ts'
import { openPostgres } from './connect.ts'
import { createServedServer, ruleRunner } from './mirror.ts'

/** Rows of one transaction. */
const FORGOTTEN_AT_ONCE = 5000

/** Opens the mirror on a server, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openServer({ config, runtime, log, address }: OpenOptions): Promise<OpenMirror> {
  const { baseUrl } = config.api
  const { server, clock, close } = await openPostgres(config, runtime, log)
  const { now } = clock
  try {
    const warning = address && (await claimAddressOn(server, baseUrl, address === 'accept'))
    if (warning) log.warn({ event: 'address_accepted' }, warning)
    const { keepRuns } = config
    const { signal } = runtime
    const runner = runnerOn(server, { now, signal })
    const leases = createLeases({
      ...runtime,
      runner,
      name: runtime.processName,
      now,
      sleep: (ms) => runtime.sleep(ms, signal),
    })
    let queue: WorkQueue | null = null
    const sharing: Sharing = {
      async openQueue(onTrouble) {
        // Only `start` needs pg-boss.
        const { openQueue } = await import('../../store/postgres/queue.ts')
        queue = await openQueue(server, onTrouble)
        return queue
      },
      isFree: leases.isFree,
    }
    return {
      ...ruleRunner(server),
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens: await createTokens(server, clock, runtime.randomHex),
      now,
      sharing,
      serve: async () => createServedServer(server, runtime),
      leases,
      forgetting: createForgetting({ ...runner, leases, batchRows: FORGOTTEN_AT_ONCE }),
      async close() {
        // Its timers would keep the process alive.
        await queue?.close().catch(() => {})
        await leases.close()
        await close()
      },
    }
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
}
