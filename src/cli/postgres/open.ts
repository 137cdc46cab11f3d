import manifest from '../../../package.json' with { type: 'json' }
import { ceilingOf } from '../../api/rate/decision.ts'
import type { Config } from '../../config/config.ts'
import type { PostgresSettings } from '../../config/postgres-address.ts'
import { readRegularFile } from '../../config/token-file.ts'
import { MirrorError } from '../../errors.ts'
import { noteProgram } from '../../store/core/program.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { isMade, migrate } from '../../store/postgres/migrations/migrate.ts'
import type { PostgresAddress } from '../../store/postgres/server/address.ts'
import { createServerClock, type ServerClock } from '../../store/postgres/server/clock.ts'
import { connectServer, type Server } from '../../store/postgres/server/server.ts'
import { makeConfigured } from '../../store/postgres/tables/configured.ts'
import type { Runtime } from '../runtime.ts'
import { passwordFromFile } from './pass-file.ts'

// Loaded only if the configuration names a PostgreSQL server, so that a mirror in a file starts as fast without it.

/** A PostgreSQL mirror, its schema up to date. */
export interface PostgresMirror {
  server: Server
  /** Of the server, the same for all workers. */
  clock: ServerClock
  now: ServerClock['now']
  close(): Promise<void>
}

/** How often the server's clock is measured, for lists without a limit of requests too. */
const MEASURE_EVERY_MS = 60_000

/**
 * Connects to the server and brings the schema up to date. Throws MirrorError. `report` gets what this process waits for,
 * `onForward` for how long no request leaves, since the server's clock was set forward.
 */
export async function openPostgres(
  { postgres, collections, rateLimit }: Pick<Config, 'postgres' | 'collections' | 'rateLimit'>,
  runtime: Runtime,
  report: (message: string) => void,
  onForward?: (waitMs: number) => void,
): Promise<PostgresMirror> {
  const server = await connect(postgres, runtime, report)
  try {
    await migrate(server)
    await runRule(server, noteProgram(manifest.version))
    await makeConfigured(server, collections)
    const { windowMs } = ceilingOf(rateLimit.requestsPerMinute ?? 1)
    const { clock, measure } = await createServerClock(server, runtime.elapsed, {
      windowMs,
      ...(onForward ? { onForward } : {}),
    })
    const stop = runtime.every(MEASURE_EVERY_MS, () => {
      // The next statement reports a server that is away.
      measure().catch(() => {})
    })
    const close = async () => {
      stop()
      await server.close()
    }
    return { server, clock, now: clock.now, close }
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}

/** Connects to the server. Throws MirrorError. */
export async function connect(
  postgres: PostgresSettings | null,
  runtime: Runtime,
  report: (message: string) => void,
  purpose?: 'reading',
): Promise<Server> {
  if (postgres === null) throw new Error('the configuration names no PostgreSQL server')
  const { elapsed, after, sleep, signal } = runtime
  // Until the signal at the longest; after it for the whole time, so that no attempt follows the last one at once.
  const pause = (ms: number) => (signal.aborted ? sleep(ms) : sleep(ms, signal))
  return connectServer(
    addressOf(postgres, runtime),
    { now: elapsed, after, signal, report, sleep: pause },
    purpose,
  )
}

/** A worker's name is unique, so that nobody takes one for another. */
export function workerName({ host, pid, newToken }: Runtime): string {
  return `${host}-${pid}-${newToken().slice(0, 12)}`
}

/** The address of the server, with what belongs to this machine. Throws MirrorError. */
function addressOf(
  { tls, authority, password, shown: _shown, ...settings }: PostgresSettings,
  runtime: Runtime,
): PostgresAddress {
  return {
    ...settings,
    tls: tls ? { authority: authority === null ? null : readAuthority(authority) } : null,
    password: () => password() ?? runtime.env.PGPASSWORD ?? passwordFromFile(settings, runtime) ?? '',
  }
}

const LONGEST_AUTHORITY = 1_000_000

function readAuthority(path: string): string {
  try {
    return readRegularFile(path, LONGEST_AUTHORITY).toString()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw new MirrorError(
      `the file that sslrootcert in "database" names cannot be read (${code}): ${path}; name the certificate of the authority that signed the server's`,
    )
  }
}

/** Whether the schema holds a mirror. Changes nothing. Throws MirrorError. */
export async function isMadeOnServer(config: Pick<Config, 'postgres'>, runtime: Runtime): Promise<boolean> {
  const server = await openPostgresForReading(config, runtime)
  await server?.close()
  return server !== null
}

/** Connects for reading, and changes nothing. Returns null if the schema holds no mirror yet. */
export async function openPostgresForReading(
  { postgres }: Pick<Config, 'postgres'>,
  runtime: Runtime,
): Promise<Server | null> {
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(postgres, runtime, report, 'reading')
  try {
    if (await isMade(server)) return server
    await server.close()
    return null
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}
