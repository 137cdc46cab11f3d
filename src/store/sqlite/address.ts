import { addressOf, assertSameAddress, HOLDS_ANYTHING, otherApi } from '../api-address.ts'
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
  const known = knownAddress(connection)
  if (known === null || known === addressOf(baseUrl) || !holdsAnything(connection)) return
  throw otherApi(known, baseUrl, { place: connection.name, other: 'file as "database"' })
}

/** Throws JobError if another process has noted another address since this one noted its own. */
export function assertAddress(connection: Connection, baseUrl: string): void {
  assertSameAddress(knownAddress(connection), baseUrl)
}

function knownAddress(connection: Connection): string | null {
  const address = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck().get(ADDRESS)
  return typeof address === 'string' ? address : null
}

function holdsAnything(connection: Connection): boolean {
  return connection.prepare(HOLDS_ANYTHING).get() !== undefined
}
