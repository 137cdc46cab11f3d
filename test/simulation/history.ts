import type { Command } from './commands.ts'
import { createList, type SimulatedList } from './list.ts'
import { type Fate, STEPS } from './process.ts'
import { createRandom, type Random } from './random.ts'
import type { ServerAct, ServerEvent } from './server.ts'
import { makeSetting, type Setting, type Tenant } from './setting.ts'
import { jobName } from './traffic.ts'

/** Something that somebody does from outside, so many milliseconds after the start. */
export interface Deed {
  at: number
  do:
    | { kind: 'start'; command: Command; fate: Fate }
    | { kind: 'server'; act: ServerAct }
    | { kind: 'weather'; faults: number }
    | { kind: 'lock'; ms: number }
    | { kind: 'replace token'; organization: string; token: string }
}

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

const HOUR = 3_600_000

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
  return random.chance(0.35) ? [...changes, ...revocation(random, pickTenant(random, tenants))] : changes
}

/** A token is refused from some request on, and perhaps valid again some requests later. */
function revocation(random: Random, { token }: Tenant): ServerEvent[] {
  const before = random.whole(1, 20)
  const revoked: ServerEvent = { before, act: { kind: 'revoke', token } }
  if (random.chance(0.5)) return [revoked]
  return [revoked, { before: before + random.whole(1, 6), act: { kind: 'validate', token } }]
}

function makeDeeds(random: Random, setting: Setting): Deed[] {
  const deeds: Deed[] = []
  let at = 0
  const starts = random.pick([2, 2, 3, 3, 4])
  for (let start = 0; start < starts; start++) {
    deeds.push({ at, do: { kind: 'start', command: makeCommand(random, setting), fate: makeFate(random) } })
    deeds.push(...somethingElse(random, setting, at))
    at += random.pick([
      0,
      random.whole(1, 3000),
      random.whole(1000, 120_000),
      random.whole(60_000, 2 * HOUR),
      random.whole(20 * HOUR, 30 * HOUR),
    ])
  }
  return deeds.toSorted((a, b) => a.at - b.at)
}

function makeCommand(random: Random, { tenants }: Setting): Command {
  const org = random.chance(0.6) ? [] : [pickTenant(random, tenants).name]
  const wait = random.chance(0.4)
  const kind = random.pick(['sync', 'sync', 'sync', 'start', 'start', 'backfill', 'resume'])
  if (kind === 'start') {
    return { kind, rounds: random.whole(1, 3), pauseMs: random.pick([5000, 300_000, 3 * HOUR]) }
  }
  if (kind === 'resume') return { kind, org }
  if (kind === 'sync') return { kind, org, wait }
  const fromPage = random.pick([1, 1, 2, 4])
  return { kind, org, wait, fromPage, restart: random.chance(0.3) }
}

function makeFate(random: Random): Fate {
  const kind = random.pick(['killed at', 'killed at', 'killed at', 'killed after', 'signalled', null])
  if (kind === null) return null
  if (kind !== 'killed at')
    return {
      kind,
      ms: random.pick([random.whole(0, 500), random.whole(0, 10_000), random.whole(0, 300_000)]),
    }
  const step = random.pick(STEPS)
  return {
    kind,
    step,
    count: random.whole(1, random.pick(step === 'statement' ? [150, 300, 600] : [6, 12, 30])),
  }
}

function somethingElse(random: Random, { tenants }: Setting, at: number): Deed[] {
  const deeds: Deed[] = []
  const soon = () => at + random.whole(0, 20_000)
  if (random.chance(0.4))
    deeds.push({ at, do: { kind: 'weather', faults: random.pick([0, 0.05, 0.15, 0.4]) } })
  if (random.chance(0.15))
    deeds.push({
      at: soon(),
      do: { kind: 'lock', ms: random.pick([100, 100, 1000, 1000, 5000, 5000, 40_000]) },
    })
  if (random.chance(0.1)) {
    const { token } = pickTenant(random, tenants)
    deeds.push({
      at: soon(),
      do: { kind: 'server', act: { kind: random.pick(['revoke', 'validate']), token } },
    })
  }
  if (random.chance(0.08)) {
    const { id } = pickTenant(random, tenants)
    deeds.push({
      at: soon(),
      do: { kind: 'replace token', organization: id, token: `token-new-${at}-5b9d3e7f` },
    })
  }
  return deeds
}

function pickTenant(random: Random, tenants: readonly Tenant[]): Tenant {
  const [first, ...others] = tenants
  if (!first) throw new Error('a setting has at least one tenant')
  return random.pick([first, ...others])
}
