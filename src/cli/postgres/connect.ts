import fs from 'node:fs'
import type { PostgresSettings } from '../../config/postgres-address.ts'
import { MirrorError, systemCode } from '../../errors.ts'
import type { PostgresAddress } from '../../store/postgres/server/pool.ts'
import { connectServer, type Server } from '../../store/postgres/server/server.ts'
import type { Runtime } from '../runtime.ts'

// Loaded only if the configuration names a PostgreSQL server, so that a command on a file starts fast.

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
