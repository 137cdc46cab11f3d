import { JobError, UsageError } from '../../errors.ts'
import { one, type Rule, run } from './sql.ts'

// `sync_settings`: what the program notes about the mirror itself, such as the address of its API.

export function* setting(name: string): Rule<string | null> {
  const row = yield* one<{ value: string }>('SELECT value FROM sync_settings WHERE name = :name', { name })
  return row?.value ?? null
}

/** Writes a setting unless it has that value already. `program` is the version of the program that used the mirror last. */
export function saveSetting(name: string, value: string): Rule<number> {
  return run(
    `
      INSERT INTO sync_settings AS known (name, value) VALUES (:name, :value)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE known.value <> excluded.value
    `,
    { name, value },
  )
}

/** The part of `api.baseUrl` that tells one API from another: not scheme and port, which a proxy changes. */
export function addressOf(baseUrl: string): string {
  const { hostname, pathname } = new URL(baseUrl)
  return hostname.replace(/\.$/, '') + pathname.replace(/\/+$/, '')
}

const ADDRESS = 'address'

export function* isOfAddress(baseUrl: string): Rule<boolean> {
  return (yield* setting(ADDRESS)) === addressOf(baseUrl)
}

/**
 * Notes the API whose lists the mirror holds, so that lists of two APIs are never mixed. Throws UsageError if
 * they are another API's, unless that is accepted. Returns a warning if the mirror has rows and an earlier
 * version did not note their address. `place`: where the mirror is, for messages.
 */
export function* claimAddress(baseUrl: string, accept: boolean, place: string): Rule<string | null> {
  if (yield* isOfAddress(baseUrl)) return null
  if (!accept) yield* assertSameApi(baseUrl, place)
  const isFirst = (yield* setting(ADDRESS)) === null
  yield* saveSetting(ADDRESS, addressOf(baseUrl))
  if (!isFirst || !(yield* holdsAnything())) return null
  return `${place} did not say yet whose lists it holds; from now on they are those of ${addressOf(baseUrl)}`
}

/** Throws UsageError if the mirror holds the lists of another address. */
function* assertSameApi(baseUrl: string, place: string): Rule<void> {
  const known = yield* setting(ADDRESS)
  if (known === null || known === addressOf(baseUrl) || !(yield* holdsAnything())) return
  throw new UsageError(
    `${place} holds the lists of ${known}, and api.baseUrl of the configuration names ${addressOf(baseUrl)}: nothing was ` +
      'sent or written. If that is another address of the same API, run "admin-mirror sync --accept-address"; if it is ' +
      'another API, name another file, or another schema=NAME, in "database"',
  )
}

/** Whether the mirror holds anything of its API. Before the first page its address may be a typing error, so any other may replace it. */
function* holdsAnything(): Rule<boolean> {
  const found = yield* one(`
    SELECT 1 FROM sync_walks WHERE pages > 0
    UNION ALL
    SELECT 1 FROM sync_jobs WHERE rows > 0 OR owner IS NOT NULL
    LIMIT 1
  `)
  return found !== null
}

/** Throws JobError if another process has noted another address since this one noted its own. */
export function* assertAddressKept(baseUrl: string): Rule<void> {
  const known = yield* setting(ADDRESS)
  const address = addressOf(baseUrl)
  if (known === null || known === address) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror now holds the lists of ${known}, and this process was started with ${address}: nothing is sent. Start ` +
      'it again with the right configuration',
  )
}
