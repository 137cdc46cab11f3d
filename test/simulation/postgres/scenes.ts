import { type Command, SYNC } from '../commands.ts'
import type { AimedBlow, Deed } from '../happening.ts'
import type { History, TimedDeed } from '../history.ts'
import { createList } from '../list.ts'
import { createRandom, type Random } from '../random.ts'
import { jobsOf, makeSetting, NO_LIMIT, type Setting } from '../setting.ts'

// Short histories of what random ones hardly ever meet: two workers that spend one token at the same time, and one that
// loses its list while it begins a walk, or ends it.

/** Seeds from here on are scenes. */
export const SCENES_FROM = 1_000_000

/** Long enough for lists of some pages. */
const UNTIL_MS = 180_000

function startOf(org: string[], ...blows: AimedBlow[]): Deed {
  const command: Command = { kind: 'start', org }
  return { kind: 'start', command, blows: [...blows, { blow: 'signal', ms: UNTIL_MS }] }
}

type Scene = Omit<History, 'startAt' | 'random'>

const SCENES = [oneBudget, oneRevoked, takenOver, otherClocks, inDoubt]

export function makeScene(seed: number): History {
  const random = createRandom(seed)
  const scene = SCENES[seed % SCENES.length] ?? takenOver
  const startAt = Date.parse('2090-01-04T09:00:00Z') + random.whole(0, 999)
  return { startAt, ...scene(random.fork()), random }
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
  const own = (): TimedDeed => {
    const blow = { clockMs: random.pick([-600_000, -5000, 5000, 600_000]) }
    return { at: at(), deed: { kind: 'strike', which: random.whole(0, 1), blow } }
  }
  const deeds = [...scene.deeds, own(), own(), own()]
  if (random.chance(0.3))
    deeds.push({ at: at(), deed: { kind: 'clock set', ms: random.pick([1500, 600_000]) } })
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
  const token = scene.setting.tenants[0]?.token ?? ''
  return {
    ...scene,
    setting: { ...scene.setting, throttle: NO_LIMIT, latencyMs: 3000 },
    serverEvents: [{ before: random.whole(3, 12), deed: { kind: 'token set', token, isValid: false } }],
  }
}

/** Each of two workers reads the lists of one organization, with the same token. */
function oneToken(random: Random, isWanted: (config: Setting['config']) => boolean): Scene {
  const setting = settingWith(random, ({ tenants: [one, other, third], config }) => {
    return one !== undefined && third === undefined && one.token === other?.token && isWanted(config)
  })
  const starts = setting.tenants.map(({ name }): TimedDeed => {
    return { at: random.whole(0, 2000), deed: startOf([name]) }
  })
  const weather: TimedDeed = { at: 0, deed: { kind: 'weather', faults: random.pick([0, 0.1, 0.3]) } }
  return { setting, lists: listsOf(setting, random, 10), deeds: [weather, ...starts], serverEvents: [] }
}

/** A worker is cut off between two of its calls, perhaps stands still then, and another one takes its list. */
function takenOver(random: Random): Scene {
  const step = random.pick(['before mirror call', 'before mirror call', 'before commit', 'after commit'])
  const blow = { isCut: true, standsMs: random.pick([0, 60_000, 60_000]) }
  return struck(random, { blow, step, count: random.whole(1, 12) })
}

/** A worker does not hear that its transaction was written: one of those with which it takes a list, and begins its walk. */
function inDoubt(random: Random): Scene {
  const blow = { isCut: true, standsMs: 0 }
  return struck(random, { blow, step: 'after commit', count: random.whole(2, 9) })
}

function struck(random: Random, blow: AimedBlow): Scene {
  const setting = settingWith(random, ({ tenants, throttle }) => {
    return tenants.length === 1 && throttle.limits.length === 0
  })
  return {
    setting,
    lists: listsOf(setting, random, 2),
    deeds: [
      { at: 0, deed: startOf([], blow) },
      { at: random.whole(0, 30_000), deed: { kind: 'start', command: SYNC, blows: [] } },
    ],
    serverEvents: [],
  }
}
