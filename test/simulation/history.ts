import { createMotion, type Deed, makeDeeds, pickTenant } from './deeds.ts'
import { jobName } from './happening.ts'
import { createList, type SimulatedList } from './list.ts'
import { createRandom, type Random } from './random.ts'
import type { ServerEvent } from './server.ts'
import { makeSetting, type Setting, type Tenant } from './setting.ts'

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
  const isMoving = random.chance(0.6)
  const setting = makeSetting(random.fork(), isMoving)
  const lists = makeLists(random.fork(), setting, isMoving)
  const jobs = [...lists.keys()]
  return {
    seed,
    startAt: (WORLDS[seed % 2] ?? 0) + random.whole(0, 999),
    setting,
    lists,
    deeds: makeDeeds(random.fork(), setting, isMoving ? jobs : []),
    serverEvents: makeServerEvents(random.fork(), setting, jobs, isMoving),
    random,
  }
}

function makeLists(
  random: Random,
  { tenants, collections, isRefreshed }: Setting,
  isMoving: boolean,
): Map<string, SimulatedList> {
  const jobs = tenants.flatMap(({ id }) => collections.map((name) => jobName(id, name)))
  return new Map(
    jobs.map((job) => {
      const perPage = random.whole(2, isRefreshed ? 8 : 5)
      // Shorter ones are walked whole instead.
      const long = random.whole(isRefreshed ? 5 : 4, 12)
      const pages = random.pick(isMoving ? [0, 1, 2, 3, long, long, long] : [0, 1, 1, 2, 2, 3, 3, 4, long])
      const last = random.whole(1, perPage)
      return [job, createList(perPage, pages === 0 ? 0 : (pages - 1) * perPage + last)]
    }),
  )
}

function makeServerEvents(
  random: Random,
  { tenants, isRefreshed }: Setting,
  jobs: readonly string[],
  isMoving: boolean,
): ServerEvent[] {
  const changes = Array.from({ length: random.whole(0, 12) }, (): ServerEvent => {
    const job = jobs[random.whole(0, jobs.length - 1)] ?? ''
    const kind = random.pick(['update', 'update', 'respell'])
    const before = random.whole(1, 30)
    const change = { kind, place: random.whole(0, 40) } as const
    return { before, act: (server) => server.change(job, change) }
  })
  const moves = isMoving ? jobs.flatMap((job) => makeMoves(random, job, isRefreshed)) : []
  const all = [...changes, ...moves]
  return random.chance(0.5) ? [...all, ...revocation(random, pickTenant(random, tenants))] : all
}

/** Lists move for some time, as often as is drawn for it, and come to rest; one list in three stands still. */
function makeMoves(random: Random, job: string, isRefreshed: boolean): ServerEvent[] {
  if (random.chance(1 / 3)) return []
  const move = createMotion(random, isRefreshed)
  const perRequest = random.pick([0.1, 0.3, 1])
  const from = random.whole(1, 12)
  const until = from + random.pick(isRefreshed ? [40, 80, 200] : [5, 20, 40, 80])
  const moves: ServerEvent[] = []
  for (let before = from; before < until; before++)
    if (random.chance(perRequest)) {
      const change = move()
      moves.push({ before, act: (server) => server.change(job, change) })
    }
  return moves
}

/** A token is refused from some request on, and perhaps valid again some requests later. */
function revocation(random: Random, { token }: Tenant): ServerEvent[] {
  const before = random.whole(1, 20)
  const revoked: ServerEvent = { before, act: (server) => server.setValid(token, false) }
  if (random.chance(0.5)) return [revoked]
  return [revoked, { before: before + random.whole(1, 6), act: (server) => server.setValid(token, true) }]
}
