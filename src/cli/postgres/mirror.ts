import fs from 'node:fs'
import type { PostgresSettings } from '../../config/postgres-address.ts'
import { MirrorError, systemCode } from '../../errors.ts'
import { type MirrorFacts, storedFacts } from '../../store/core/status.ts'
import { holdsMirror } from '../../store/postgres/migrate.ts'
import { connectServer, type Server } from '../../store/postgres/server.ts'
import type { MirrorPlace } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'

/** Connects for reading, and changes nothing. Returns null if the schema holds no mirror yet. */
export async function readFacts(place: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  const server = await connectForReading(place, runtime)
  try {
    return (await holdsMirror(server)) ? await factsOn(server, runtime) : null
  } finally {
    await server.close().catch(() => {})
  }
}

export function factsOn(server: Server, { isAlive }: Pick<Runtime, 'isAlive'>): Promise<MirrorFacts> {
  return server.snapshot(storedFacts(isAlive, server.clock.now()))
}

export function connectForReading(
  { config }: Pick<MirrorPlace, 'config'>,
  runtime: Runtime,
): Promise<Server> {
  if (!config?.postgres) throw new Error('the configuration names no PostgreSQL server')
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  return connect(config.postgres, runtime, report, { purpose: 'reading' })
}

/** Connects to the server. `setting`: where the user has written its address. Throws MirrorError. */
export async function connect(
  { tls, authority, password, shown: _shown, ...address }: PostgresSettings,
  runtime: Runtime,
  report: (message: string) => void,
  { purpose, setting = '"database"' }: { purpose?: 'reading'; setting?: string } = {},
): Promise<Server> {
  const { sleep, signal } = runtime
  return connectServer(
    {
      ...address,
      setting,
      tls: tls ? { authority: authority === null ? null : readAuthority(authority, setting) } : null,
      // Without one pg looks into the file that PGPASSFILE names.
      password: () => password() ?? runtime.env.PGPASSWORD,
    },
    // The sleep ends at the signal. One that begins after it lasts its whole time, so that attempts do not follow each other at once.
    { ...runtime, report, sleep: (ms) => (signal.aborted ? sleep(ms) : sleep(ms, signal)) },
    purpose,
  )
}

function readAuthority(file: string, setting: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw new MirrorError(
      `the file that sslrootcert in ${setting} names cannot be read (${systemCode(error) ?? 'unreadable'}): ${file}; name the certificate of the authority that signed the server's`,
    )
  }
}
