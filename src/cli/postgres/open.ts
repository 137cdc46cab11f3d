import { createServerForgetting } from '../../store/postgres/forget.ts'
import {
  announceDaemon,
  createLeases,
  forgetDeadDaemons,
  freeLists,
  keepJobs,
  withdrawDaemon,
} from '../../store/postgres/leases.ts'
import type { ListQueue } from '../../store/postgres/queue/queue.ts'
import { claimAddressOn, openPostgresStore } from '../../store/postgres/store.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { OpenMirror, OpenOptions, Sharing } from '../mirror.ts'
import { hasEnded, openPostgres, workerName } from './connect.ts'
import { createServedServer, ruleRunner } from './mirror.ts'

/** Opens the mirror on a server, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openServer({ config, runtime, log, address }: OpenOptions): Promise<OpenMirror> {
  const { baseUrl } = config.api
  const { server, clock, close } = await openPostgres(config, runtime, log)
  const { now } = clock
  try {
    const warning = address && (await claimAddressOn(server, baseUrl, address === 'accept'))
    if (warning) log.warn({ event: 'address_accepted' }, warning)
    const processName = workerName(runtime)
    const leases = await createLeases({
      server,
      name: processName,
      now,
      sleep: runtime.sleep,
      hasEnded: (name) => hasEnded(name, runtime),
    })
    const end = new AbortController()
    void keepJobs(leases, runtime.sleep, end.signal)
    const { keepRuns } = config
    const { signal } = runtime
    let queue: ListQueue | null = null
    const sharing: Sharing = {
      async openQueue(onTrouble) {
        // Only `start` needs pg-boss.
        const { openQueue } = await import('../../store/postgres/queue/queue.ts')
        queue = await openQueue(server, onTrouble)
        return queue
      },
      async keepAlive() {
        await leases.beat()
        await leases.bury()
      },
      freeLists: (lists) => freeLists(server, lists),
    }
    return {
      ...ruleRunner(server),
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens: await createTokens(server, clock, runtime.randomHex),
      processName,
      now,
      sharing,
      serve: async () => createServedServer(server, runtime),
      async announceDaemon() {
        await forgetDeadDaemons(server, now())
        await announceDaemon(server, processName, new Date(now()).toISOString(), config.fingerprint)
        return () => withdrawDaemon(server, processName)
      },
      beginForgetting: async () => createServerForgetting(server, leases, { now, signal }),
      async close() {
        // Its timers would keep the process alive.
        await queue?.close().catch(() => {})
        end.abort()
        await leases.close()
        await close()
      },
    }
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
}
