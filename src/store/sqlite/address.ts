import { JobError, UsageError } from '../../errors.ts'
import { addressOf } from '../api-address.ts'
import type { Connection } from './sql.ts'

const ADDRESS = 'address'

/**
 * Notes the API whose lists the mirror holds, so that lists of two APIs are never mixed. Throws UsageError if
 * they are another API's, unless that is accepted. Returns a warning if the mirror has rows and an earlier
 * version did not note their address. Call it inside a transaction.
 */
export function claimAddress(connection: Connection, baseUrl: string, accept: boolean): string | null {
  const address = addressOf(baseUrl)
  const known = knownAddress(connection)
  if (known === address) return null
  if (!accept) assertSameApi(connection, baseUrl)
  connection
    .prepare(
      'INSERT INTO sync_settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    )
    .run(ADDRESS, address)
  if (known !== null || !holdsAnything(connection)) return null
  return `${connection.name} did not say yet whose lists it holds; from now on they are those of ${address}`
}

/** Throws UsageError if the mirror holds the lists of another address. */
export function assertSameApi(connection: Connection, baseUrl: string): void {
  const [address, known] = [addressOf(baseUrl), knownAddress(connection)]
  if (known === null || known === address || !holdsAnything(connection)) return
  throw new UsageError(
    `${connection.name} holds the lists of ${known}, and api.baseUrl of the configuration names ${address}: nothing was ` +
      'sent or written. If that is another address of the same API, run "admin-mirror sync --accept-address"; if it is ' +
      'another API, name another file as "database"',
  )
}

/** Throws JobError if another process has noted another address since this one noted its own. */
export function assertAddress(connection: Connection, baseUrl: string): void {
  const [address, known] = [addressOf(baseUrl), knownAddress(connection)]
  if (known === null || known === address) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror holds the lists of ${known} by now, and this process was started with ${address}: nothing is sent. Start ` +
      'it again with the configuration that is right',
  )
}

function knownAddress(connection: Connection): string | null {
  const address = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck().get(ADDRESS)
  return typeof address === 'string' ? address : null
}

/** Before the first page the noted address may be a typing error, and any other one may replace it. */
function holdsAnything(connection: Connection): boolean {
  const sql = `
    SELECT 1 FROM sync_walks WHERE pages > 0
    UNION ALL
    SELECT 1 FROM sync_jobs WHERE rows > 0 OR owner IS NOT NULL
    LIMIT 1
  `
  return connection.prepare(sql).get() !== undefined
}
