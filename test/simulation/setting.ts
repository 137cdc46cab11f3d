import { type Config, parseConfig } from '../../src/config/config.ts'
import { jobName } from './happening.ts'
import type { Random } from './random.ts'
import type { ThrottleRules } from './server.ts'

export const BASE_URL = 'https://admin.example.com'

const IDS = [
  '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d',
  '0b9f4f6e-8a55-4b0e-9f59-0d7c2f0d9a11',
  'c2a1d7f0-1f0e-4c59-8a3e-5b9d3e7f6a22',
]

export type Setting = ReturnType<typeof makeSetting>
export type Tenant = Setting['tenants'][number]

export function jobsOf({ tenants, collections }: Setting): string[] {
  return tenants.flatMap(({ id }) => collections.map((name) => jobName(id, name)))
}

export const NO_LIMIT: ThrottleRules = { limits: [], headers: false }

/**
 * What stays as it is through a history: who is configured how, and what the server is like. Where lists move, many pages are read, and
 * nobody waits for hours.
 */
export function makeSetting(random: Random, isMoving: boolean) {
  const count = random.pick([1, 1, 1, 2, 2, 3])
  const shared = random.chance(0.6)
  const tenants = IDS.slice(0, count).map((id, index) => ({
    id,
    name: ['acme', 'globex', 'initech'][index] ?? id,
    token: `token-${shared && index < 2 ? 'shared' : index}-9d0b3c4a`,
    /** Its token is read again for each run, instead of once a process. */
    tokenFile: random.chance(0.3),
  }))
  const keepsHistory = random.chance(0.8)
  const isRefreshed = random.chance(isMoving ? 0.7 : 0.3)
  const collections = random.chance(0.6) ? ['orders'] : ['orders', 'establishments']
  return {
    tenants,
    collections,
    throttle: makeThrottle(random, isMoving),
    /** Whether all tokens are one user's, who has one budget. */
    oneUser: random.chance(0.2),
    /** How often somebody else spends of a budget just before a request. */
    strangers: random.pick([0, 0, 0.1, 0.3]),
    /** One way takes between 1 and so many milliseconds. */
    latencyMs: random.pick([20, 300, 3000]),
    /** Whether superseded versions are kept. */
    keepsHistory,
    /** Whether lists are refreshed between full walks. */
    isRefreshed,
    config: makeConfig(random, tenants, collections, { keepsHistory, isRefreshed }),
  }
}

function makeThrottle(random: Random, isMoving: boolean): ThrottleRules {
  if (random.chance(0.25)) return NO_LIMIT
  const minute = { most: random.pick([4, 6, 10, 15, 30, 60]), windowSeconds: 60 }
  const hour = { most: random.whole(6, 40), windowSeconds: 3600 }
  return { limits: !isMoving && random.chance(0.4) ? [minute, hour] : [minute], headers: random.chance(0.8) }
}

function makeConfig(
  random: Random,
  tenants: readonly { id: string; name: string; token: string }[],
  collections: readonly string[],
  { keepsHistory: history, isRefreshed }: { keepsHistory: boolean; isRefreshed: boolean },
): Omit<Config, 'database'> {
  const given = {
    api: { baseUrl: BASE_URL },
    rateLimit: {
      requestsPerMinute: random.pick([null, null, 6, 20]),
      sharePercent: random.pick([100, 100, 50]),
      scope: random.pick(['token', 'token', 'organization', 'all']),
    },
    retry: { attempts: random.pick([2, 4, 10]) },
    concurrency: random.pick([1, 2, 4]),
    refresh: isRefreshed && {
      every: random.pick(['20s', '2m', '10m']),
      share: random.pick([10, 50, 100]),
    },
    removals: { brakePercent: random.pick([20, 20, 60, 0]), brakeRows: random.pick([10, 3, 0]) },
    collections: {
      orders: { history },
      establishments: collections.includes('establishments') ? { history } : false,
    },
    schedule: random.pick(['*/15 * * * *', '0 * * * *']),
    organizations: tenants.map(({ id, name, token }) => ({ id, name, token })),
  }
  return parseConfig(JSON.stringify(given), '/config.yaml', { env: {}, tokens: 'resolve' })
}
