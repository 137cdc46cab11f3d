import type { Command } from './commands.ts'
import type { Change, ListFilters, Spot } from './list.ts'
import { type Fate, STEPS } from './process.ts'
import type { Random } from './random.ts'
import type { Setting, Tenant } from './setting.ts'
import type { Start, World } from './world.ts'

/** In which ways a list moves for a while; what is there several times happens more often. */
type Motion = readonly [Change['kind'], ...Change['kind'][]]

const OFTEN_NEW: readonly [Motion, ...Motion[]] = [
  ['insert'],
  ['insert', 'insert', 'insert', 'insert many'],
  ['insert', 'insert', 'insert many', 'delete', 'update'],
  ['insert', 'insert', 'insert', 'delete', 'move'],
]

/** In most lists that are refreshed, new items come all the time. */
const REFRESHED = 0.6

const MOTIONS: readonly [Motion, ...Motion[]] = [
  ['insert'],
  ['delete'],
  ['move'],
  ['insert', 'insert', 'delete'],
  ['insert', 'delete', 'move'],
  ['insert', 'delete', 'move', 'list again', 'update', 'respell'],
  ['delete', 'delete many', 'insert', 'list again'],
]

/** Where new items are put in one list: most lists have one place for them. */
type Order = 'front' | 'end' | 'anywhere'

/** Draws changes of one list, phase by phase. */
export function createMotion(random: Random, isRefreshed: boolean) {
  const order: Order = random.pick(['front', 'end', 'anywhere'])
  const motion = random.pick(isRefreshed && random.chance(REFRESHED) ? OFTEN_NEW : MOTIONS)

  function spot(): Spot {
    return order === 'anywhere' ? { place: random.whole(0, 60) } : order
  }

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

/** Something that somebody does from outside, so many milliseconds after the start. */
export type Deed = { at: number } & ({ start: Start } | { act: (world: World) => void })

const HOUR = 3_600_000

/** `jobs`: those whose lists move. */
export function makeDeeds(random: Random, setting: Setting, jobs: readonly string[]): Deed[] {
  const deeds: Deed[] = []
  let at = 0
  const { isRefreshed } = setting
  const starts = isRefreshed ? random.pick([2, 3, 3, 4]) : random.pick([1, 2, 2, 2, 3])
  for (let start = 0; start < starts; start++) {
    // Of lists that move, walks that come to their end tell most.
    const fate =
      jobs.length > 0 && random.chance(isRefreshed ? 0.4 : 0.6) ? null : makeFate(random, isRefreshed)
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
    if (jobs.length > 0 && random.chance(0.5))
      deeds.push(...movesMeanwhile(random, jobs, at, pauseMs, isRefreshed))
    at += pauseMs
  }
  return deeds.toSorted((a, b) => a.at - b.at)
}

/** What happens to a list while perhaps nobody reads it. */
function movesMeanwhile(
  random: Random,
  jobs: readonly string[],
  from: number,
  ms: number,
  isRefreshed: boolean,
): Deed[] {
  const job = jobs[random.whole(0, jobs.length - 1)] ?? ''
  const move = createMotion(random, isRefreshed)
  return Array.from({ length: random.whole(1, 12) }, () => {
    const at = from + random.whole(0, ms)
    const change = move()
    return { at, act: ({ server }) => server.change(job, change) }
  })
}

function makeCommand(random: Random, { tenants, isRefreshed }: Setting): Command {
  const org = random.chance(0.6) ? [] : [pickTenant(random, tenants).name]
  const wait = random.chance(0.25)
  const kind = isRefreshed
    ? random.pick(['sync', 'sync', 'sync', 'start', 'start', 'start', 'backfill', 'resume'])
    : random.pick(['sync', 'sync', 'start', 'start', 'backfill', 'resume'])
  if (kind === 'start') {
    const pauses = isRefreshed ? ([5000, 300_000, HOUR / 2] as const) : ([5000, 300_000, 3 * HOUR] as const)
    return { kind, rounds: random.whole(1, 2), pauseMs: random.pick(pauses) }
  }
  if (kind === 'resume') return { kind, org }
  const refresh = isRefreshed && random.chance(0.6)
  if (kind === 'sync') return { kind, org, wait, refresh, acceptsRemovals: !refresh && random.chance(0.25) }
  const fromPage = random.pick([1, 1, 2, 4])
  const filters = random.pick<ListFilters>([{}, {}, { parity: 'odd' }])
  return { kind, org, wait, fromPage, filters, restart: random.chance(0.3) }
}

function makeFate(random: Random, isRefreshed: boolean): Fate {
  const kind = random.pick(['killed at', 'killed at', 'killed at', 'killed after', 'signalled', null])
  if (kind === null) return null
  if (kind !== 'killed at')
    return {
      kind,
      ms: random.pick([random.whole(0, 500), random.whole(0, 10_000), random.whole(0, 300_000)]),
    }
  const step = isRefreshed && random.chance(0.4) ? 'refresh answer' : random.pick(STEPS)
  const most = isRefreshed ? 120 : 30
  return {
    kind,
    step,
    count: random.whole(1, random.pick(step === 'statement' ? [150, 300, most * 20] : [6, 12, most])),
  }
}

function somethingElse(random: Random, { tenants, isRefreshed }: Setting, at: number): Deed[] {
  const deeds: Deed[] = []
  const soon = () => at + random.whole(0, 20_000)
  if (random.chance(0.4)) {
    const faults = random.pick([0, 0.05, 0.15, 0.4])
    deeds.push({ at, act: (world) => world.setWeather(faults) })
  }
  if (random.chance(0.15)) {
    const then = soon()
    const ms = random.pick([100, 100, 1000, 1000, 5000, 5000, 40_000])
    deeds.push({ at: then, act: (world) => world.lock(ms) })
  }
  if (random.chance(0.1)) {
    const { token } = pickTenant(random, tenants)
    const then = soon()
    const isValid = random.pick([false, true])
    deeds.push({ at: then, act: (world) => world.setValid(token, isValid) })
  }
  if (random.chance(0.08)) {
    const filters = random.pick<ListFilters>([{}, { parity: 'odd' }, { parity: 'even' }])
    deeds.push({ at, act: (world) => world.setFilters(filters) })
  }
  if (isRefreshed && random.chance(0.1)) {
    const newest = random.pick(['auto', 'first', 'last'])
    deeds.push({ at, act: (world) => world.setNewest(newest) })
  }
  if (isRefreshed && random.chance(0.1)) {
    const then = soon()
    const ms = random.pick([1500, 60_000, 600_000])
    deeds.push({ at: then, act: (world) => world.setClockBack(ms) })
  }
  if (random.chance(0.08)) {
    const { id } = pickTenant(random, tenants)
    const token = `token-new-${at}-5b9d3e7f`
    deeds.push({ at: soon(), act: (world) => world.replaceToken(id, token) })
  }
  return deeds
}

/** One of those that there are. */
export function pickTenant(random: Random, tenants: readonly Tenant[]): Tenant {
  const [first, ...others] = tenants
  if (!first) throw new Error('a setting has at least one tenant')
  return random.pick([first, ...others])
}
