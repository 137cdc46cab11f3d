import type { Command } from './commands.ts'
import { type Change, createList, type ListFilters, type SimulatedList, type Spot } from './list.ts'
import { type Fate, STEPS } from './process.ts'
import { createRandom, type Random } from './random.ts'
import type { ServerEvent } from './server.ts'
import { jobsOf, makeSetting, type Setting, type Tenant } from './setting.ts'
import type { Start, World } from './world.ts'

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

/** Something that somebody does from outside, so many milliseconds after the start. */
export type Deed = { at: number } & ({ start: Start } | { act: (world: World) => void })

// Before the real time, and after it: whatever the program took from that would show.
const WORLDS = [Date.parse('2010-01-04T09:00:00Z'), Date.parse('2090-01-04T09:00:00Z')]

const HOUR = 3_600_000

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

function makeLists(random: Random, setting: Setting, isMoving: boolean) {
  const { isRefreshed } = setting
  return new Map(
    jobsOf(setting).map((job) => {
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
    const job = random.pick(jobs)
    const kind = random.pick(['update', 'update', 'respell'])
    const before = random.whole(1, 30)
    const change = { kind, place: random.whole(0, 40) } as const
    return { before, act: (server) => server.change(job, change) }
  })
  const moves = isMoving ? jobs.flatMap((job) => makeMoves(random, job, isRefreshed)) : []
  const all = [...changes, ...moves]
  return random.chance(0.5) ? [...all, ...revocation(random, random.pick(tenants))] : all
}

/** Lists move for some time, as often as is drawn for it, and come to rest; one list in three stands still. */
function makeMoves(random: Random, job: string, isRefreshed: boolean): ServerEvent[] {
  if (random.chance(1 / 3)) return []
  const move = createMotion(random, isRefreshed)
  const perRequest = random.pick([0.1, 0.3, 1])
  const from = random.whole(1, 12)
  const length = random.pick(isRefreshed ? [40, 80, 200] : [5, 20, 40, 80])
  return Array.from({ length }, (_, index) => from + index).flatMap((before): ServerEvent[] => {
    if (!random.chance(perRequest)) return []
    const change = move()
    return [{ before, act: (server) => server.change(job, change) }]
  })
}

/** A token is refused from some request on, and perhaps valid again some requests later. */
function revocation(random: Random, { token }: Tenant): ServerEvent[] {
  const before = random.whole(1, 20)
  const revoked: ServerEvent = { before, act: (server) => server.setValid(token, false) }
  if (random.chance(0.5)) return [revoked]
  return [revoked, { before: before + random.whole(1, 6), act: (server) => server.setValid(token, true) }]
}

/** In which ways a list moves for a while; what is there several times happens more often. */
type Motion = readonly Change['kind'][]

/** In most lists that are refreshed, new items come all the time. */
const OFTEN_NEW: readonly Motion[] = [
  ['insert'],
  ['insert', 'insert', 'insert', 'insert many'],
  ['insert', 'insert', 'insert many', 'delete', 'update'],
  ['insert', 'insert', 'insert', 'delete', 'move'],
]

const MOTIONS: readonly Motion[] = [
  ['insert'],
  ['delete'],
  ['move'],
  ['insert', 'insert', 'delete'],
  ['insert', 'delete', 'move'],
  ['insert', 'delete', 'move', 'list again', 'update', 'respell'],
  ['delete', 'delete many', 'insert', 'list again'],
]

/** Draws changes of one list, phase by phase. Most lists have one place for new items. */
function createMotion(random: Random, isRefreshed: boolean) {
  const order = random.pick(['front', 'end', 'anywhere'])
  const motion = random.pick(isRefreshed && random.chance(0.6) ? OFTEN_NEW : MOTIONS)
  const spot = (): Spot => (order === 'anywhere' ? { place: random.whole(0, 60) } : order)

  return (): Change => {
    const kind = random.pick(motion)
    const place = random.whole(0, 60)
    if (kind === 'insert' || kind === 'list again') return { kind, to: spot() }
    if (kind === 'insert many') return { kind, to: spot(), count: random.whole(2, 45) }
    if (kind === 'move') return { kind, place, to: spot() }
    if (kind === 'delete many') return { kind, place: random.pick([0, place]), count: random.whole(2, 40) }
    return { kind, place }
  }
}

/** `jobs`: those whose lists move. */
function makeDeeds(random: Random, setting: Setting, jobs: readonly string[]): Deed[] {
  const deeds: Deed[] = []
  let at = 0
  const { isRefreshed } = setting
  const starts = isRefreshed ? random.pick([2, 3, 3, 4]) : random.pick([1, 2, 2, 2, 3])
  for (let start = 0; start < starts; start++) {
    // Of lists that move, walks that come to their end tell most.
    const isLeftAlone = jobs.length > 0 && random.chance(isRefreshed ? 0.4 : 0.6)
    const fate = isLeftAlone ? null : makeFate(random, isRefreshed)
    deeds.push({ at, start: { command: makeCommand(random, setting), fate } })
    // Who is told to stop while somebody holds the mirror's lock must not wait for its end.
    if (fate?.kind === 'signalled' && fate.ms % 4 === 0)
      deeds.push({ at: at + fate.ms, act: (world) => world.lock(40_000) })
    deeds.push(...somethingElse(random, setting, at))
    const pauseMs = random.pick([
      0,
      random.whole(1, 3000),
      random.whole(1000, 120_000),
      random.whole(60_000, 2 * HOUR),
      random.whole(20 * HOUR, 30 * HOUR),
    ])
    if (jobs.length > 0 && random.chance(0.5)) {
      // What happens to a list while perhaps nobody reads it.
      const job = random.pick(jobs)
      const move = createMotion(random, isRefreshed)
      for (let left = random.whole(1, 12); left > 0; left--) {
        const then = at + random.whole(0, pauseMs)
        const change = move()
        deeds.push({ at: then, act: ({ server }) => server.change(job, change) })
      }
    }
    at += pauseMs
  }
  return deeds.toSorted((a, b) => a.at - b.at)
}

function makeCommand(random: Random, { tenants, isRefreshed }: Setting): Command {
  const org = random.chance(0.6) ? [] : [random.pick(tenants).name]
  const wait = random.chance(0.25)
  const kind = isRefreshed
    ? random.pick(['sync', 'sync', 'sync', 'start', 'start', 'start', 'backfill', 'resume'])
    : random.pick(['sync', 'sync', 'start', 'start', 'backfill', 'resume'])
  if (kind === 'start') {
    const rounds = random.whole(1, 2)
    return { kind, rounds, pauseMs: random.pick([5000, 300_000, isRefreshed ? HOUR / 2 : 3 * HOUR]) }
  }
  if (kind === 'resume') return { kind, org }
  const refresh = isRefreshed && random.chance(0.6)
  if (kind === 'sync') return { kind, org, wait, refresh, acceptsRemovals: !refresh && random.chance(0.25) }
  const fromPage = random.pick([1, 1, 2, 4])
  const filters = random.pick<ListFilters>([{}, {}, { parity: 'odd' }])
  return { kind, org, wait, fromPage, filters, restart: random.chance(0.3) }
}

function makeFate(random: Random, isRefreshed: boolean): Fate {
  const kind = random.pick(['killed at', 'killed at', 'killed at', 'killed after', 'signalled', 'killed at'])
  if (kind !== 'killed at') {
    const times = [random.whole(0, 500), random.whole(0, 10_000), random.whole(0, 300_000)]
    return { kind, ms: random.pick(times) }
  }
  const step = isRefreshed && random.chance(0.4) ? 'refresh answer' : random.pick(STEPS)
  const most = isRefreshed ? 120 : 30
  const counts = step === 'statement' ? [150, 300, most * 20] : [6, 12, most]
  return { kind, step, count: random.whole(1, random.pick(counts)) }
}

function somethingElse(random: Random, { tenants, isRefreshed }: Setting, at: number): Deed[] {
  const deeds: Deed[] = []
  const soon = () => at + random.whole(0, 20_000)
  const act = (when: number, deed: (world: World) => void) => deeds.push({ at: when, act: deed })
  if (random.chance(0.4)) {
    const faults = random.pick([0, 0.05, 0.15, 0.4])
    act(at, (world) => world.setWeather(faults))
  }
  if (random.chance(0.15)) {
    const then = soon()
    const ms = random.pick([100, 100, 1000, 1000, 5000, 5000, 40_000])
    act(then, (world) => world.lock(ms))
  }
  if (random.chance(0.1)) {
    const { token } = random.pick(tenants)
    const then = soon()
    const isValid = random.pick([false, true])
    act(then, (world) => world.setValid(token, isValid))
  }
  if (random.chance(0.08)) {
    const filters = random.pick<ListFilters>([{}, { parity: 'odd' }, { parity: 'even' }])
    act(at, (world) => world.setFilters(filters))
  }
  if (isRefreshed && random.chance(0.1)) {
    const newest = random.pick(['auto', 'first', 'last'])
    act(at, (world) => world.setNewest(newest))
  }
  if (isRefreshed && random.chance(0.1)) {
    const then = soon()
    const ms = random.pick([1500, 60_000, 600_000])
    act(then, (world) => world.setClockBack(ms))
  }
  if (random.chance(0.08)) {
    const { id } = random.pick(tenants)
    const token = `token-new-${at}-5b9d3e7f`
    act(soon(), (world) => world.replaceToken(id, token))
  }
  return deeds
}
