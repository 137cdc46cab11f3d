import { JobError, UsageError } from '../../errors.ts'
import { one, type Rule, run } from './sql.ts'

// `sync_settings`: what the program notes about the mirror itself, such as the address of its API.

export function* setting(name: string): Rule<string | null> {
  const row = yield* one<{ value: string }>('SELECT value FROM sync_settings WHERE name = :name', { name })
  return row?.value ?? null
}

/** Writes a setting unless it has that value already. */
export function saveSetting(name: string, value: string): Rule<number> {
  return run(
    `
      INSERT INTO sync_settings AS known (name, value) VALUES (:name, :value)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE known.value <> excluded.value
    `,
    { name, value },
  )
}

/** The mirror's salt. `newSalt` makes one if there is none; no other process may do so meanwhile. */
export function* saltOf(newSalt: () => string): Rule<string> {
  const known = yield* setting('salt')
  if (known !== null) return known
  const salt = newSalt()
  yield* saveSetting('salt', salt)
  return salt
}

/** The part of `api.baseUrl` that tells one API from another: not scheme and port, which a proxy changes. */
export function addressOf(baseUrl: string): string {
  const { hostname, pathname } = new URL(baseUrl)
  return hostname.replace(/\.$/, '') + pathname.replace(/\/+$/, '')
}

/**
 * Notes the API whose lists the mirror holds, so that lists of two APIs are never mixed. Throws UsageError if they are another API's, unless that is
 * accepted: before the first page its address may be a typing error, so any other may replace it. `place`: where the mirror is, for messages.
 */
export function* claimAddress(baseUrl: string, accept: boolean, place: string): Rule<void> {
  const address = addressOf(baseUrl)
  const known = yield* setting('address')
  if (known === address) return
  const holdsAnything = yield* one(
    'SELECT 1 FROM sync_walks WHERE pages > 0 UNION ALL SELECT 1 FROM sync_jobs WHERE rows > 0 OR owner IS NOT NULL LIMIT 1',
  )
  if (known !== null && !accept && holdsAnything)
    throw new UsageError(
      `${place} holds the lists of ${known}, and api.baseUrl of the configuration names ${address}: nothing was ` +
        'sent or written. If that is another address of the same API, run "admin-mirror sync --accept-address"; if it is ' +
        'another API, name another file, or another schema=NAME, in "database"',
    )
  yield* saveSetting('address', address)
}

/** Throws JobError if another process has noted another address since this one noted its own. */
export function* assertAddressKept(baseUrl: string): Rule<void> {
  const known = yield* setting('address')
  const address = addressOf(baseUrl)
  if (known === null || known === address) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror now holds the lists of ${known}, and this process was started with ${address}: nothing is sent. Start ` +
      'it again with the right configuration',
  )
}
