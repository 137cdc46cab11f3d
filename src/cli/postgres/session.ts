import { claimAddress } from '../../store/postgres/address.ts'
import {
  type Announcement,
  abandonedJobs,
  announceDaemon,
  forgetDeadDaemons,
  isOwned,
} from '../../store/postgres/daemons.ts'
import { takeFreeLists } from '../../store/postgres/free-lists.ts'
import { createLeases } from '../../store/postgres/leases.ts'
import type { ListQueue } from '../../store/postgres/queue/queue.ts'
import { openPostgresStore } from '../../store/postgres/store.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { OpenMirror, SessionOptions } from '../session.ts'
import { openPostgres, workerName } from './open.ts'
import { createPublishing } from './publishing.ts'
import { createServedServer } from './served-server.ts'

/** Opens the mirror on a PostgreSQL server for commands that read lists. Throws MirrorError. */
export async function openPostgresMirror({
  config,
  runtime,
  logger,
  acceptAddress = false,
}: SessionOptions): Promise<OpenMirror> {
  const { baseUrl } = config.api
  const { server, clock, now, close } = await openPostgres(
    config,
    runtime,
    (message) => logger.info({ event: 'mirror_busy' }, message),
    (waitMs) =>
      logger.warn(
        { event: 'clock_set', wait_ms: waitMs },
        'the clock of the PostgreSQL server was set forward, or this machine was asleep: no request that a limit counts leaves until ' +
          'what was sent before counts no longer',
      ),
  )
  try {
    await claimAddress(server, baseUrl, acceptAddress)
    const tokens = await createTokens(server, clock, runtime.newToken)
    const processName = workerName(runtime)
    const leases = await createLeases(server, processName)
    const { keepRuns } = config
    const { signal } = runtime
    let queue: ListQueue | null = null
    let announced: Announcement | null = null
    return {
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens,
      processName,
      now,
      sharing: {
        async openQueue(onTrouble) {
          // Only `start` needs pg-boss.
          const { openQueue } = await import('../../store/postgres/queue/queue.ts')
          queue = await openQueue(server, onTrouble)
          return queue
        },
        async abandonedJobs() {
          await announced?.renew()
          const { silentClaims } = await import('../../store/postgres/queue/silent-claims.ts')
          const { wakeFuture } = await import('../../store/postgres/queue/wake.ts')
          await wakeFuture(server)
          return [...(await abandonedJobs(server)), ...(await silentClaims(server))]
        },
        isOwned: (organizationId, collection) => isOwned(server, organizationId, collection),
        takeFreeLists: (lists) => takeFreeLists(server, lists, now()),
      },
      publishing: createPublishing(server, leases, runtime),
      serve: async () => createServedServer(server, runtime),
      announceDaemon: async () => {
        await forgetDeadDaemons(server)
        announced = await announceDaemon(server, leases, new Date(now()).toISOString())
        return announced.withdraw
      },
      close: async () => {
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
