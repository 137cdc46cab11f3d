import { claimAddress } from '../../store/postgres/address.ts'
import { abandonedJobs, announceDaemon, forgetDeadDaemons } from '../../store/postgres/daemons.ts'
import { createLeases } from '../../store/postgres/leases.ts'
import { openPostgresStore } from '../../store/postgres/store.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { OpenMirror, SessionOptions } from '../session.ts'
import { openPostgres } from './open.ts'
import { createPublishing } from './publishing.ts'
import { createServing } from './serving.ts'
import { workerName } from './with-postgres.ts'

/** Opens the mirror on a PostgreSQL server for commands that read lists. Throws MirrorError. */
export async function openPostgresMirror({
  config,
  runtime,
  logger,
  acceptAddress = false,
}: SessionOptions): Promise<OpenMirror> {
  const { baseUrl } = config.api
  const { server, now, close } = await openPostgres(config, runtime, (message) =>
    logger.info({ event: 'mirror_busy' }, message),
  )
  try {
    await claimAddress(server, baseUrl, acceptAddress)
    const tokens = await createTokens(server, now, runtime.newToken)
    const processName = workerName(runtime)
    const leases = await createLeases(server, processName)
    const { keepRuns } = config
    const { signal } = runtime
    return {
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens,
      processName,
      now,
      connection: null,
      publishing: createPublishing(server, leases, runtime, now),
      served: createServing(server, runtime),
      abandonedJobs: () => abandonedJobs(server),
      announceDaemon: async () => {
        await forgetDeadDaemons(server)
        return announceDaemon(server, leases, new Date(now()).toISOString())
      },
      close: async () => {
        await leases.close()
        await close()
      },
    }
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
}
