import { createServerForgetting } from '../../store/postgres/forget.ts'
import {
  announceDaemon,
  createLeases,
  forgetDeadDaemons,
  takeFreeLists,
  withdrawDaemon,
} from '../../store/postgres/leases.ts'
import type { ListQueue } from '../../store/postgres/queue/queue.ts'
import { claimAddressOn, openPostgresStore } from '../../store/postgres/store.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { OpenMirror, OpenOptions, Sharing } from '../mirror.ts'
import { openPostgres, workerName } from './connect.ts'
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
    const leases = await createLeases(server, processName)
    const { keepRuns } = config
    const { signal } = runtime
    let queue: ListQueue | null = null
    let since: string | null = null
    const sharing: Sharing = {
      async openQueue(onTrouble) {
        // Only `start` needs pg-boss.
        const { openQueue } = await import('../../store/postgres/queue/queue.ts')
        queue = await openQueue(server, onTrouble)
        return queue
      },
      async renew() {
        await leases.renew()
        if (since !== null) await announceDaemon(server, processName, since, config.fingerprint)
      },
      takeFreeLists: (lists) => takeFreeLists(server, lists, now()),
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
        await forgetDeadDaemons(server)
        since = new Date(now()).toISOString()
        await announceDaemon(server, processName, since, config.fingerprint)
        return async () => {
          since = null
          await withdrawDaemon(server, processName)
        }
      },
      beginForgetting: async () => createServerForgetting(server, leases, { now, signal }),
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
