import type { Config } from '../../config/config.ts'
import type { PostgresSettings } from '../../config/database/postgres-address.ts'
import { readRegularFile } from '../../config/regular-file.ts'
import { MirrorError } from '../../errors.ts'
import { isMade, migrate } from '../../store/postgres/migrations/migrate.ts'
import type { PostgresAddress } from '../../store/postgres/server/address.ts'
import { measureOffset } from '../../store/postgres/server/clock.ts'
import { connectServer, type Server } from '../../store/postgres/server/server.ts'
import { makeConfigured } from '../../store/postgres/tables/configured.ts'
import type { Runtime } from '../runtime.ts'
import { passwordFromFile } from './pass-file.ts'

// Nothing here is loaded unless the configuration names a PostgreSQL server: a mirror in a file pays nothing for it.

/** A PostgreSQL mirror, its schema up to date. */
export interface PostgresMirror {
  server: Server
  /** The clock of the server, which is the same for all workers. Epoch milliseconds. */
  now: () => number
  close(): Promise<void>
}

/** How often the difference between the clocks is measured. */
const MEASURE_EVERY_MS = 60_000

/**
 * Connects to the server and brings the schema up to date. Throws MirrorError. `report` gets what this process waits for.
 */
export async function openPostgres(
  { postgres, collections }: Pick<Config, 'postgres' | 'collections'>,
  runtime: Runtime,
  report: (message: string) => void,
): Promise<PostgresMirror> {
  if (postgres === null) throw new Error('the configuration names no PostgreSQL server')
  const { signal, every } = runtime
  const server = await connectServer(addressOf(postgres, runtime), {
    now: runtime.now,
    sleep: pauseOf(runtime),
    signal,
    after: runtime.after,
    report,
  })
  try {
    await migrate(server)
    await makeConfigured(server, collections)
    let offset = await measureOffset(server, runtime.now)
    const stop = every(MEASURE_EVERY_MS, () => {
      measureOffset(server, runtime.now).then(
        (measured) => {
          offset = measured
        },
        // A server that is away is reported by whoever needs it.
        () => {},
      )
    })
    const close = async () => {
      stop()
      await server.close()
    }
    return { server, now: () => runtime.now() + offset, close }
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}

/** Sleeps until the signal at the longest; after it for the whole time, so that no attempt follows the last one at once. */
export function pauseOf({ sleep, signal }: Pick<Runtime, 'sleep' | 'signal'>): (ms: number) => Promise<void> {
  return (ms) => (signal.aborted ? sleep(ms) : sleep(ms, signal))
}

/** The address of the server, with what belongs to this machine. Throws MirrorError. */
export function addressOf(
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
  if (postgres === null) throw new Error('the configuration names no PostgreSQL server')
  const { now, after, signal, stderr } = runtime
  const report = (message: string) => stderr.write(`${message}\n`)
  const patience = { now, sleep: pauseOf(runtime), after, signal, report }
  const server = await connectServer(addressOf(postgres, runtime), patience, 'reading')
  try {
    if (await isMade(server)) return server
    await server.close()
    return null
  } catch (error) {
    await server.close().catch(() => {})
    throw error
  }
}
