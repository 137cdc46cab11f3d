import { type Deed, makeDeeds, pickTenant } from './deeds.ts'
import { createList, type SimulatedList } from './list.ts'
import { createRandom, type Random } from './random.ts'
import type { ServerEvent } from './server.ts'
import { makeSetting, type Setting, type Tenant } from './setting.ts'
import { jobName } from './traffic.ts'

/** All that is to happen, but for chance on the way. */
export interface History {
  seed: number
  startAt: number
  setting: Setting
  /** By job. */
  lists: Map<string, SimulatedList>
  deeds: Deed[]
  serverEvents: ServerEvent[]
  /** For what is drawn while it happens. */
  random: Random
}

// Lock files bear the real time. In the one world they are all older than an hour and swept, in the other none is.
const WORLDS = [Date.parse('2010-01-04T09:00:00Z'), Date.parse('2090-01-04T09:00:00Z')]

export function makeHistory(seed: number): History {
  const random = createRandom(seed)
  const setting = makeSetting(random.fork())
  const lists = makeLists(random.fork(), setting)
  return {
    seed,
    startAt: (WORLDS[seed % 2] ?? 0) + random.whole(0, 999),
    setting,
    lists,
    deeds: makeDeeds(random.fork(), setting),
    serverEvents: makeServerEvents(random.fork(), setting, [...lists.keys()]),
    random,
  }
}

function makeLists(random: Random, { tenants, collections }: Setting): Map<string, SimulatedList> {
  const jobs = tenants.flatMap(({ id }) => collections.map((name) => jobName(id, name)))
  return new Map(
    jobs.map((job) => {
      const perPage = random.whole(2, 4)
      const pages = random.pick([0, 1, 1, 2, 2, 3, 3, 4, random.whole(5, 12)])
      const last = random.whole(1, perPage)
      return [job, createList(perPage, pages === 0 ? 0 : (pages - 1) * perPage + last)]
    }),
  )
}

function makeServerEvents(random: Random, { tenants }: Setting, jobs: string[]): ServerEvent[] {
  const changes = Array.from({ length: random.whole(0, 12) }, (): ServerEvent => {
    const job = jobs[random.whole(0, jobs.length - 1)] ?? ''
    const kind = random.pick(['update', 'update', 'respell'])
    return {
      before: random.whole(1, 30),
      act: { kind: 'list', job, change: { kind, place: random.whole(0, 40) } },
    }
  })
  return random.chance(0.5) ? [...changes, ...revocation(random, pickTenant(random, tenants))] : changes
}

/** A token is refused from some request on, and perhaps valid again some requests later. */
function revocation(random: Random, { token }: Tenant): ServerEvent[] {
  const before = random.whole(1, 20)
  const revoked: ServerEvent = { before, act: { kind: 'revoke', token } }
  if (random.chance(0.5)) return [revoked]
  return [revoked, { before: before + random.whole(1, 6), act: { kind: 'validate', token } }]
}
