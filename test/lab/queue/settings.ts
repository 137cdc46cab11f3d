import type { Setting } from './play.ts'
import type { PlayedList } from './workers.ts'

export interface Size {
  workers: number
  organizations: number
  tokens: number
}

/** What one token's organizations are among all of them. */
interface Sharing {
  /** The token of the organization with this number. */
  tokenOf: (organization: number, size: Size) => number
  pagesOf?: (organization: number, collection: string) => number
  perMinute?: number
  latencyMs?: number
}

const COLLECTIONS = ['orders', 'establishments']
const PAGES = 3

/** As people write configurations: the organizations of a token one after another. */
const ONE_AFTER_ANOTHER: Sharing['tokenOf'] = (organization, { organizations, tokens }) =>
  Math.floor((organization * tokens) / organizations)

/** The first half of all organizations share one token. */
const HALF: Sharing['tokenOf'] = (organization, size) =>
  organization < size.organizations / 2 ? 0 : ONE_AFTER_ANOTHER(2 * organization - size.organizations, size)

const SHARINGS: Record<string, Sharing> = {
  'as many lists of each token': { tokenOf: ONE_AFTER_ANOTHER },
  'half of all lists of one token': { tokenOf: HALF },
  'a long list of each token': {
    tokenOf: ONE_AFTER_ANOTHER,
    pagesOf: (organization, collection) => (collection === 'orders' && organization % 50 === 0 ? 200 : PAGES),
  },
  'answers that take two seconds': { tokenOf: ONE_AFTER_ANOTHER, latencyMs: 2000 },
}

export function settings(size: Size): Setting[] {
  return Object.entries(SHARINGS).map(
    ([name, { tokenOf, pagesOf = () => PAGES, perMinute = 300, latencyMs = 200 }]) => ({
      name,
      workers: size.workers,
      lists: Array.from({ length: size.organizations }, (_, organization) => organization).flatMap(
        (organization) =>
          COLLECTIONS.map(
            (collection): PlayedList => ({
              organization,
              collection,
              token: `token-${tokenOf(organization, size)}`,
              pages: pagesOf(organization, collection),
            }),
          ),
      ),
      perMinute,
      latencyMs,
    }),
  )
}
