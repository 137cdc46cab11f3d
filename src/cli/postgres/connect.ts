import fs from 'node:fs'
import manifest from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config/config.ts'
import type { PostgresSettings } from '../../config/postgres-address.ts'
import { MirrorError, systemCode } from '../../errors.ts'
import { saveSetting } from '../../store/core/settings.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { holdsMirror, makeMissing, migrate } from '../../store/postgres/migrate.ts'
import { createServerClock } from '../../store/postgres/server/clock.ts'
import type { PostgresAddress } from '../../store/postgres/server/pool.ts'
import { connectServer, type Server } from '../../store/postgres/server/server.ts'
import type { MirrorLog } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'

// Loaded only if the configuration names a PostgreSQL server, so that a command on a file starts fast.

/** How often the server's clock is measured, even if no list has a limit of requests. */
const MEASURE_EVERY_MS = 60_000

/** Connects to the server and brings the schema up to date. Throws MirrorError. `clock`: of the server, the same for all workers. */
export async function openPostgres(
  { postgres, collections }: Pick<Config, 'postgres' | 'collections'>,
  runtime: Runtime,
  log: MirrorLog,
) {
  const server = await connect(postgres, runtime, (message) => log.info({ event: 'mirror_busy' }, message))
  try {
    await migrate(server)
    await runRule(server, saveSetting('program', manifest.version))
    await makeMissing(server, collections)
    const { clock, measure } = await createServerClock(server, runtime.elapsed)
    const stop = runtime.every(MEASURE_EVERY_MS, () => {
      // The next statement reports a server that is away.
      measure().catch(() => {})
    })
    const close = async () => {
      stop()
      await server.close()
    }
    return { server, clock, close }
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}

/** Connects to the server. Throws MirrorError. */
export async function connect(
  postgres: PostgresSettings | null | undefined,
  runtime: Runtime,
  report: (message: string) => void,
  purpose?: 'reading',
): Promise<Server> {
  if (!postgres) throw new Error('the configuration names no PostgreSQL server')
  const { elapsed, after, sleep, signal } = runtime
  // Ends at the signal. A sleep that begins after it lasts its whole time, so that attempts do not follow each other at once.
  const pause = (ms: number) => (signal.aborted ? sleep(ms) : sleep(ms, signal))
  return connectServer(
    serverAddress(postgres, runtime),
    { now: elapsed, after, signal, report, sleep: pause },
    purpose,
  )
}

/** The address of the server, with the password and the certificate that this machine has. Throws MirrorError. */
function serverAddress(
  { tls, authority, password, shown: _shown, ...settings }: PostgresSettings,
  runtime: Runtime,
): PostgresAddress {
  return {
    ...settings,
    tls: tls ? { authority: authority === null ? null : readAuthority(authority) } : null,
    // Without one pg looks into the file that PGPASSFILE names.
    password: () => password() ?? runtime.env.PGPASSWORD,
  }
}

function readAuthority(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw new MirrorError(
      `the file that sslrootcert in "database" names cannot be read (${systemCode(error) ?? 'unreadable'}): ${file}; name the certificate of the authority that signed the server's`,
    )
  }
}

/** Connects for reading, and changes nothing. Returns null if the schema holds no mirror yet. */
export async function openServerForReading(
  config: Pick<Config, 'postgres'> | null,
  runtime: Runtime,
): Promise<Server | null> {
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(config?.postgres, runtime, report, 'reading')
  try {
    if (await holdsMirror(server)) return server
    await server.close()
    return null
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}
