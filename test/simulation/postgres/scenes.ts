import { type Command, SYNC } from '../commands.ts'
import { type Deed, type History, makeHistory } from '../history.ts'
import { createList } from '../list.ts'
import type { Cut } from '../process.ts'
import { createRandom, type Random } from '../random.ts'
import { jobsOf, makeSetting, NO_LIMIT, type Setting } from '../setting.ts'

// A mirror on a server has troubles of its own: workers that are cut off from it, and workers that stand still meanwhile.

const CUT_AT = ['statement', 'before commit', 'after commit', 'after commit', 'request', 'answer'] as const

/** What happens to a mirror in a file, and workers that lose their connections, stand still, or both. */
export function makeServerHistory(seed: number): History {
  const history = makeHistory(seed)
  const random = createRandom(seed + 1_000_000_000)
  const deeds = history.deeds.flatMap((deed) => troubled(random, deed)).toSorted((a, b) => a.at - b.at)
  return { ...history, deeds }
}

function troubled(random: Random, deed: Deed): Deed[] {
  if (!('start' in deed)) return [deed]
  const cut = random.chance(0.35)
    ? { step: random.pick(CUT_AT), count: random.whole(1, random.pick([6, 20, 60])) }
    : null
  const deeds: Deed[] = [{ ...deed, start: { ...deed.start, cut } }, ...companions(random, deed.at)]
  const soon = () => deed.at + random.whole(0, random.pick([2000, 20_000, 200_000]))
  const which = random.whole(0, 5)
  if (random.chance(0.2)) deeds.push({ at: soon(), act: (world) => world.cutOff(which) })
  if (random.chance(0.35)) {
    const at = soon()
    const ms = random.pick([500, 30_000, 120_000, 600_000])
    const isCut = random.chance(0.7)
    deeds.push({ at, act: (world) => world.halt(which, ms, isCut) })
    // Somebody who takes over what the other one has.
    if (random.chance(0.7)) deeds.push({ at: at + random.whole(0, ms), start: { command: SYNC, fate: null } })
  }
  return deeds
}

/** One or two more workers that are started at about the same time, for the same lists. */
function companions(random: Random, at: number): Deed[] {
  if (random.chance(0.5)) return []
  return Array.from({ length: random.pick([1, 1, 2]) }, (): Deed => {
    const pauseMs = random.pick([5000, 300_000])
    const command = { kind: 'start', rounds: random.whole(1, 2), pauseMs } as const
    const fate = random.chance(0.3)
      ? ({ kind: 'killed after', ms: random.pick([random.whole(0, 5000), random.whole(0, 60_000)]) } as const)
      : null
    return { at: at + random.whole(0, 2000), start: { command, fate } }
  })
}

// Short histories of what random ones hardly ever meet: two workers that spend one token at the same time, and one that
// loses its list while it begins a walk, or ends it.

/** Seeds from here on are scenes. */
export const SCENES_FROM = 1_000_000

type Scene = Omit<History, 'seed' | 'startAt' | 'random'>

const SCENES = [oneBudget, oneRevoked, takenOver, otherClocks, inDoubt]

export function makeScene(seed: number): History {
  const random = createRandom(seed)
  const scene = SCENES[seed % SCENES.length] ?? takenOver
  const startAt = Date.parse('2090-01-04T09:00:00Z') + random.whole(0, 999)
  return { seed, startAt, ...scene(random.fork()), random }
}

function settingWith(random: Random, isWanted: (setting: Setting) => boolean): Setting {
  for (;;) {
    const setting = makeSetting(random.fork(), false)
    if (isWanted(setting)) return setting
  }
}

function listsOf(setting: Setting, random: Random, pages: number): History['lists'] {
  return new Map(jobsOf(setting).map((job) => [job, createList(3, random.whole(pages, pages * 3))]))
}

/** Two workers spend one budget, which is gone before the lists are read. */
function oneBudget(random: Random): Scene {
  return oneToken(random, ({ rateLimit }) => rateLimit.requestsPerMinute === 6)
}

/** The same, while the clocks of their machines are set, or that of the server is set back. */
function otherClocks(random: Random): Scene {
  const scene = oneBudget(random)
  const at = () => random.whole(0, random.pick([5000, 60_000, 200_000]))
  const own = (): Deed => {
    const ms = random.pick([-600_000, -5000, 5000, 600_000])
    const then = at()
    const which = random.whole(0, 1)
    return { at: then, act: (world) => world.setOwnClock(which, ms) }
  }
  const then = at()
  const ms = random.pick([1500, 600_000])
  const ofServer: Deed = { at: then, act: (world) => world.setClockBack(ms) }
  const deeds = [...scene.deeds, own(), own(), own(), ...(random.chance(0.3) ? [ofServer] : [])]
  return { ...scene, deeds: deeds.toSorted((one, other) => one.at - other.at) }
}

/**
 * Two workers use one token, which is revoked while requests of both are on their way, or wait to be tried again. Nothing
 * limits them, and their budgets are not the token's: no permit brings the news.
 */
function oneRevoked(random: Random): Scene {
  const scene = oneToken(random, ({ rateLimit: { requestsPerMinute, scope } }) => {
    return requestsPerMinute === null && scope !== 'token'
  })
  const [tenant] = scene.setting.tenants
  const token = tenant?.token ?? ''
  return {
    ...scene,
    setting: { ...scene.setting, throttle: NO_LIMIT, latencyMs: 3000 },
    serverEvents: [{ before: random.whole(3, 12), act: (server) => server.setValid(token, false) }],
  }
}

/** Each of two workers reads the lists of one organization, with the same token. */
function oneToken(random: Random, isWanted: (config: Setting['config']) => boolean): Scene {
  const setting = settingWith(random, ({ tenants: [one, other, third], config }) => {
    return one !== undefined && third === undefined && one.token === other?.token && isWanted(config)
  })
  const starts = setting.tenants.map(({ name }): Deed => {
    const command: Command = { kind: 'start', org: [name], rounds: 1, pauseMs: 5000 }
    return { at: random.whole(0, 2000), start: { command, fate: null } }
  })
  const faults = random.pick([0, 0.1, 0.3])
  const weather: Deed = { at: 0, act: (world) => world.setWeather(faults) }
  return { setting, lists: listsOf(setting, random, 10), deeds: [weather, ...starts], serverEvents: [] }
}

/** A worker is cut off between two of its calls, perhaps stands still then, and another one takes its list. */
function takenOver(random: Random): Scene {
  const step = random.pick(['before mirror call', 'before mirror call', 'before commit', 'after commit'])
  return cutOff(random, { step, count: random.whole(1, 16), standsMs: random.pick([0, 60_000, 60_000]) })
}

/** A worker does not hear that its transaction was written: one of those with which it takes a list, and begins its walk. */
function inDoubt(random: Random): Scene {
  return cutOff(random, { step: 'after commit', count: random.whole(2, 9) })
}

function cutOff(random: Random, cut: Cut): Scene {
  const setting = settingWith(random, ({ tenants, throttle }) => {
    return tenants.length === 1 && throttle.limits.length === 0
  })
  const command: Command = { kind: 'start', rounds: random.whole(1, 2), pauseMs: 5000 }
  return {
    setting,
    lists: listsOf(setting, random, 2),
    deeds: [
      { at: 0, start: { command, fate: null, cut } },
      { at: random.whole(0, 30_000), start: { command: SYNC, fate: null } },
    ],
    serverEvents: [],
  }
}
