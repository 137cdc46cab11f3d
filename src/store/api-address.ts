import { JobError, UsageError } from '../errors.ts'

/** What a mirror remembers of `api.baseUrl`: a proxy in front of an API changes scheme and port, and the API stays the same. */
export function addressOf(baseUrl: string): string {
  const { hostname, pathname } = new URL(baseUrl)
  return hostname.replace(/\.$/, '') + pathname.replace(/\/+$/, '')
}

/** Finds a row if the mirror holds anything. Before the first page the noted address may be a typing error, which any other replaces. */
export const HOLDS_ANYTHING = `
  SELECT 1 FROM sync_walks WHERE pages > 0
  UNION ALL
  SELECT 1 FROM sync_jobs WHERE rows > 0 OR owner IS NOT NULL
  LIMIT 1
`

/** The mirror holds the lists of another address. `place`, `other`: what holds them, and how another such place is named. */
export function otherApi(
  known: string,
  baseUrl: string,
  { place, other }: Record<'place' | 'other', string>,
) {
  return new UsageError(
    `${place} holds the lists of ${known}, and api.baseUrl of the configuration names ${addressOf(baseUrl)}: nothing was ` +
      'sent or written. If that is another address of the same API, run "admin-mirror sync --accept-address"; if it is ' +
      `another API, name another ${other}`,
  )
}

/** Throws JobError if another process has noted another address since this one noted its own. */
export function assertSameAddress(known: string | null, baseUrl: string): void {
  const address = addressOf(baseUrl)
  if (known === null || known === address) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror holds the lists of ${known} by now, and this process was started with ${address}: nothing is sent. Start ` +
      'it again with the configuration that is right',
  )
}
