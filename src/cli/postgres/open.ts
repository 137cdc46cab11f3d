import manifest from '../../../package.json' with { type: 'json' }
import { MirrorError } from '../../errors.ts'
import { createForgetting } from '../../store/core/forget.ts'
import { createLeases } from '../../store/core/leases.ts'
import { saveSetting } from '../../store/core/settings.ts'
import { exec } from '../../store/core/sql.ts'
import { makeConfigured } from '../../store/core/tables.ts'
import { serverAt } from '../../store/postgres/connection.ts'
import { POSTGRES } from '../../store/postgres/driver.ts'
import { migrate } from '../../store/postgres/migrate.ts'
import type { WorkQueue } from '../../store/postgres/queue.ts'
import { measureClock, runnerOn } from '../../store/postgres/server.ts'
import { claimAddressOn, createTokens, openPostgresStore } from '../../store/postgres/store.ts'
import type { OpenMirror, OpenOptions } from '../mirror.ts'
import { connect, factsOn } from './mirror.ts'

/** Rows of one transaction. */
const FORGOTTEN_AT_ONCE = 5000

/** How often the server's clock is measured, even if no list has a limit of requests. */
const MEASURE_EVERY_MS = 60_000

/** After this long, a probe or an answer says that the server is away. Milliseconds. */
const PROBE_MS = 3000
const FACTS_MS = 10_000

/** Opens the mirror on a server, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openServer({ config, runtime, log, address }: OpenOptions): Promise<OpenMirror> {
  const { postgres, collections, keepRuns } = config
  const { baseUrl } = config.api
  const { signal, processName: name } = runtime
  if (!postgres) throw new Error('the configuration names no PostgreSQL server')
  const server = await connect(postgres, runtime, (message) => log.info({ event: 'mirror_busy' }, message))
  try {
    await migrate(server)
    await server.write(function* () {
      yield* saveSetting('program', manifest.version)
      yield* makeConfigured(POSTGRES, collections)
    })
    if (address) await claimAddressOn(server, baseUrl, address === 'accept')
    const { now } = server.clock
    const runner = runnerOn(server, { now, signal })
    const sleep = (ms: number) => runtime.sleep(ms, signal)
    const leases = createLeases({ ...runtime, runner, name, now, sleep })
    const stopMeasuring = runtime.every(MEASURE_EVERY_MS, () => {
      // The next statement reports a server that is away.
      measureClock(server).catch(() => {})
    })
    /** Makes a task reject after a time, in which it goes on. */
    const within = async <T>(ms: number, task: Promise<T>): Promise<T> => {
      const over = new AbortController()
      const late = runtime.sleep(ms, over.signal).then(() => {
        throw new MirrorError(`${serverAt(server.address)} does not answer; it is waited for`)
      })
      // The loser of the race may reject later.
      for (const one of [late, task]) one.catch(() => {})
      return Promise.race([late, task]).finally(() => over.abort())
    }
    let queue: WorkQueue | null = null
    return {
      run: (rule) => server.read(rule(POSTGRES)),
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens: await createTokens(server, runtime.randomHex),
      leases,
      forgetting: createForgetting({ ...runner, leases, batchRows: FORGOTTEN_AT_ONCE }),
      now,
      probe: () => within(PROBE_MS, server.once(exec(['SELECT 1 FROM sync_settings LIMIT 1']))),
      writeFault: () => null,
      facts: () => within(FACTS_MS, factsOn(server, runtime)),
      async openQueue(onTrouble) {
        // Only `start` needs pg-boss.
        const { openQueue } = await import('../../store/postgres/queue.ts')
        queue = await openQueue(server, onTrouble)
        return queue
      },
      async close() {
        // Its timers would keep the process alive.
        await queue?.close().catch(() => {})
        stopMeasuring()
        await leases.close()
        await server.close()
      },
    }
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}
