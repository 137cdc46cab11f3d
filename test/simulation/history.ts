import { type Command, SYNC } from './commands.ts'
import type { AimedBlow, Blow, Deed, Newest } from './happening.ts'
import { type Change, createList, type ListFilters, type SimulatedList } from './list.ts'
import { type StepOfProcess, STEPS } from './process.ts'
import { createRandom, type Random } from './random.ts'
import { jobsOf, makeSetting, type Setting } from './setting.ts'

/** All that is to happen, but for chance on the way. */
export interface History {
  startAt: number
  setting: Setting
  /** By job. */
  lists: Map<string, SimulatedList>
  /** So many milliseconds after the start. */
  deeds: TimedDeed[]
  /** Just before the request of this number arrives at the server. */
  serverEvents: { before: number; deed: Deed }[]
  /** For what is drawn while it happens. */
  random: Random
}

export interface TimedDeed {
  at: number
  deed: Deed
}

// Before the real time, and after it: whatever the program took from that would show.
const WORLDS = [Date.parse('2010-01-04T09:00:00Z'), Date.parse('2090-01-04T09:00:00Z')]

const MINUTE = 60_000
const HOUR = 3_600_000

/** `onServer`: the mirror is on a server, from which processes are cut off; some stand still, and others take over what they have. */
export function makeHistory(seed: number, onServer = false): History {
  const random = createRandom(seed)
  const isMoving = random.chance(0.6)
  const setting = makeSetting(random.fork(), isMoving)
  const lists = makeLists(random.fork(), setting, isMoving)
  const jobs = [...lists.keys()]
  const deeds = makeDeeds(random.fork(), setting, isMoving ? jobs : [])
  const troubled = onServer ? withTroubles(random.fork(), deeds) : deeds
  return {
    startAt: (WORLDS[seed % 2] ?? 0) + random.whole(0, 999),
    setting,
    lists,
    deeds: troubled.toSorted((a, b) => a.at - b.at),
    serverEvents: makeServerEvents(random.fork(), setting, jobs, isMoving),
    random,
  }
}

function makeLists(random: Random, setting: Setting, isMoving: boolean): History['lists'] {
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
): History['serverEvents'] {
  const changes = Array.from({ length: random.whole(0, 12) }, () => {
    const kind = random.pick(['update', 'update', 'respell'])
    const change: Change = { kind, place: random.whole(0, 40), to: 'end', count: 1 }
    return { before: random.whole(1, 30), deed: { kind: 'change', job: random.pick(jobs), change } as const }
  })
  const moves = isMoving ? jobs.flatMap((job) => makeMoves(random, job, isRefreshed)) : []
  const all = [...changes, ...moves]
  if (random.chance(0.5)) return all
  // A token is refused from some request on, and perhaps valid again some requests later.
  const { token } = random.pick(tenants)
  const before = random.whole(1, 20)
  all.push({ before, deed: { kind: 'token set', token, isValid: false } })
  if (random.chance(0.5))
    all.push({ before: before + random.whole(1, 6), deed: { kind: 'token set', token, isValid: true } })
  return all
}

/** Lists move for some time, as often as is drawn for it, and come to rest; one list in three stands still. */
function makeMoves(random: Random, job: string, isRefreshed: boolean): History['serverEvents'] {
  if (random.chance(1 / 3)) return []
  const move = createMotion(random, isRefreshed)
  const perRequest = random.pick([0.1, 0.3, 1])
  const from = random.whole(1, 12)
  const length = random.pick(isRefreshed ? [40, 80, 200] : [5, 20, 40, 80])
  return Array.from({ length }, (_, index) => from + index)
    .filter(() => random.chance(perRequest))
    .map((before) => ({ before, deed: { kind: 'change', job, change: move() } }))
}

/** In which ways a list moves for a while; what is there several times happens more often. */
type Motion = readonly (Change['kind'] | 'insert many' | 'delete many')[]

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

/** Draws changes of one list. Most lists have one place for new items. */
function createMotion(random: Random, isRefreshed: boolean): () => Change {
  const order = random.pick(['front', 'end', 'anywhere'])
  const motion = random.pick(isRefreshed && random.chance(0.6) ? OFTEN_NEW : MOTIONS)
  return () => {
    const drawn = random.pick(motion)
    const place = random.whole(0, 60)
    const to = order === 'anywhere' ? random.whole(0, 60) : order
    if (drawn === 'insert many') return { kind: 'insert', place, to, count: random.whole(2, 45) }
    if (drawn === 'delete many')
      return { kind: 'delete', place: random.pick([0, place]), to, count: random.whole(2, 40) }
    return { kind: drawn, place, to, count: 1 }
  }
}

/** `jobs`: those whose lists move. */
function makeDeeds(random: Random, setting: Setting, jobs: readonly string[]): TimedDeed[] {
  const deeds: TimedDeed[] = []
  let at = 0
  const { isRefreshed } = setting
  const starts = isRefreshed ? random.pick([2, 3, 3, 4]) : random.pick([1, 2, 2, 2, 3])
  for (let left = starts; left > 0; left--) {
    // Of lists that move, walks that come to their end tell most.
    const isLeftAlone = jobs.length > 0 && random.chance(isRefreshed ? 0.4 : 0.6)
    const command = makeCommand(random, setting)
    const blow = makeBlow(random, isRefreshed)
    const blows = isLeftAlone ? [] : [blow]
    const times = isRefreshed ? [2 * MINUTE, 10 * MINUTE, HOUR / 2] : [5 * MINUTE, HOUR, 6 * HOUR]
    // The others end by themselves.
    if (command.kind === 'start') blows.push({ blow: 'signal', ms: random.pick(times) })
    deeds.push({ at, deed: { kind: 'start', command, blows } })
    // Who is told to stop while somebody holds the mirror's lock must not wait for its end.
    if (!isLeftAlone && blow.blow === 'signal' && 'ms' in blow && blow.ms % 4 === 0)
      deeds.push({ at: at + blow.ms, deed: { kind: 'locked', ms: 40_000 } })
    deeds.push(...somethingElse(random, setting, at))
    const pauseMs = random.pick([
      0,
      random.whole(1, 3000),
      random.whole(1000, 2 * MINUTE),
      random.whole(MINUTE, 2 * HOUR),
      random.whole(20 * HOUR, 30 * HOUR),
    ])
    if (jobs.length > 0 && random.chance(0.5)) {
      // What happens to a list while perhaps nobody reads it.
      const job = random.pick(jobs)
      const move = createMotion(random, isRefreshed)
      for (let more = random.whole(1, 12); more > 0; more--)
        deeds.push({ at: at + random.whole(0, pauseMs), deed: { kind: 'change', job, change: move() } })
    }
    at += pauseMs
  }
  return deeds
}

function makeCommand(random: Random, { tenants, isRefreshed }: Setting): Command {
  const org = random.chance(0.6) ? [] : [random.pick(tenants).name]
  const wait = random.chance(0.25)
  const kind = random.pick(['sync', 'sync', 'start', 'start', 'backfill', 'resume'])
  if (kind === 'start') return { kind, org: [] }
  if (kind === 'resume') return { kind, org }
  const refresh = isRefreshed && random.chance(0.6)
  if (kind === 'sync') return { kind, org, wait, refresh, acceptsRemovals: !refresh && random.chance(0.25) }
  const fromPage = random.pick([1, 1, 2, 4])
  const filters = random.pick<ListFilters>([{}, {}, { parity: 'odd' }])
  return { kind, org, wait, fromPage, filters, restart: random.chance(0.3) }
}

/** How a process is brought down before its work is done. */
function makeBlow(random: Random, isRefreshed: boolean): AimedBlow {
  if (random.chance(1 / 3)) {
    const ms = random.pick([random.whole(0, 500), random.whole(0, 10_000), random.whole(0, 300_000)])
    return { blow: random.pick(['kill', 'signal']), ms }
  }
  const step = isRefreshed && random.chance(0.4) ? 'refresh answer' : random.pick(STEPS)
  const most = isRefreshed ? 120 : 30
  const counts = step === 'statement' ? [150, 300, most * 20] : [6, 12, most]
  return { blow: 'kill', step, count: random.whole(1, random.pick(counts)) }
}

/** What people and machines do beside. */
function somethingElse(random: Random, { tenants, isRefreshed }: Setting, at: number): TimedDeed[] {
  const { id, token } = random.pick(tenants)
  const soon = at + random.whole(0, 20_000)
  const rare = isRefreshed ? 0.1 : 0
  const deeds: [probability: number, at: number, deed: Deed][] = [
    [0.4, at, { kind: 'weather', faults: random.pick([0, 0.05, 0.15, 0.4]) }],
    [0.15, soon, { kind: 'locked', ms: random.pick([100, 100, 1000, 1000, 5000, 5000, 40_000]) }],
    [0.1, soon, { kind: 'token set', token, isValid: random.chance(0.5) }],
    [
      0.08,
      at,
      { kind: 'filters changed', filters: random.pick([{}, { parity: 'odd' }, { parity: 'even' }]) },
    ],
    [rare, at, { kind: 'newest changed', newest: random.pick<Newest>(['auto', 'first', 'last']) }],
    [rare, soon, { kind: 'clock set', ms: random.pick([1500, 60_000, 600_000]) }],
    [0.08, soon, { kind: 'token replaced', organization: id, after: `token-new-${at}-5b9d3e7f` }],
  ]
  return deeds
    .filter(([probability]) => random.chance(probability))
    .map(([, when, deed]) => ({ at: when, deed }))
}

const CUT_AT: readonly StepOfProcess[] = [
  'statement',
  'before commit',
  'after commit',
  'after commit',
  'request',
  'answer',
]

/** Workers lose their connections to the mirror's server, stand still, or both, and have others beside them. */
function withTroubles(random: Random, deeds: readonly TimedDeed[]): TimedDeed[] {
  return deeds.flatMap((timed) => {
    const { at, deed } = timed
    if (deed.kind !== 'start') return [timed]
    const blows = [...deed.blows]
    const cut: Blow = { isCut: true, standsMs: 0 }
    if (random.chance(0.35))
      blows.push({ blow: cut, step: random.pick(CUT_AT), count: random.whole(1, random.pick([6, 20, 60])) })
    const troubles: TimedDeed[] = [{ at, deed: { ...deed, blows } }, ...companions(random, at)]
    const soon = () => at + random.whole(0, random.pick([2000, 20_000, 200_000]))
    const which = random.whole(0, 5)
    if (random.chance(0.2)) troubles.push({ at: soon(), deed: { kind: 'strike', which, blow: cut } })
    if (random.chance(0.35)) {
      const then = soon()
      const standsMs = random.pick([500, 30_000, 120_000, 600_000])
      troubles.push({
        at: then,
        deed: { kind: 'strike', which, blow: { isCut: random.chance(0.7), standsMs } },
      })
      // Somebody who takes over what the other one has.
      if (random.chance(0.7))
        troubles.push({
          at: then + random.whole(0, standsMs),
          deed: { kind: 'start', command: SYNC, blows: [] },
        })
    }
    return troubles
  })
}

/** One or two more workers that are started at about the same time, for the same lists. */
function companions(random: Random, at: number): TimedDeed[] {
  if (random.chance(0.5)) return []
  return Array.from({ length: random.pick([1, 1, 2]) }, (): TimedDeed => {
    const blow = random.pick(['signal', 'signal', 'kill'])
    const ms = random.pick([random.whole(0, 5000), random.whole(0, MINUTE), 5 * MINUTE])
    const command: Command = { kind: 'start', org: [] }
    return { at: at + random.whole(0, 2000), deed: { kind: 'start', command, blows: [{ blow, ms }] } }
  })
}
