import {
  afterFullWalk,
  type CompleteWalk,
  newestEnd,
  type RefreshRules,
  type RefreshState,
  readEnds,
} from '../../../src/sync/refresh/state.ts'
import {
  afterOlder,
  agedShare,
  isWalkedWhole,
  nextOfVisit,
  nextReading,
  type Reading,
  shareRules,
} from '../../../src/sync/refresh/worth.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { createWorld, type Measured, type World, type WorldSetting } from './world.ts'

/** Lists of one token, refreshed by the program's own decisions beside a walk a day. */
export interface Line {
  lists: readonly Omit<WorldSetting, 'minutes'>[]
  /** Requests a minute. */
  limit: number
  /** The part of the refreshes whose process is killed behind one of their pages, if they have several. */
  killed?: number
  /** Days that are measured, after BEFORE of them in which it becomes what it is in the long run. */
  days?: number
}

export interface Freshness extends Measured {
  requestsPerDay: number
  /** Those of refreshes; and in the hour that has most of them, in parts of the share. */
  refreshesPerDay: number
  fullestHour: number
  /** Refreshes that were finished, and those of them whose claim was not true. */
  refreshes: number
  untrue: number
  lists: readonly { arrivals: number; newAges: readonly number[] }[]
}

const BEFORE = 2
const SHARE = 10
const EVERY = 5
const HOUR = 60
const DAY = 24 * HOUR
const MINUTE_MS = 60_000
/** As often as the program looks for what is due. Minutes. */
const LOOK = 5 / 60
const RULES: RefreshRules = { total: 'check', newest: 'auto' }

interface PlayedList {
  world: World
  state: RefreshState
  arrivals: number
  walk: { startedAt: number; page: number; firstTotal: number; added: number; changed: number } | null
  nextWalk: number
  /** Rows that were added, and when: what a refresh counts as found. */
  found: { at: number; count: number }[]
}

/** Times are minutes, those of the program milliseconds. */
export function measureFreshness(line: Line, seed: number): Freshness {
  const { lists: settings, limit, killed = 0, days = 3 } = line
  const random = createRandom(seed)
  const minutes = (BEFORE + days) * DAY
  const rules = shareRules(limit, SHARE)
  const counts = { requests: 0, finished: 0, untrue: 0 }
  /** When requests of refreshes were sent. */
  let sent: number[] = []
  let share = { at: 0, level: 0 }
  let [time, at] = [0, 0]
  let isRefreshing = false
  const nowMs = () => Math.round(time * MINUTE_MS)
  const lists = settings.map((setting) => createPlayed(setting, random.fork()))

  function createPlayed(setting: Line['lists'][number], own: Random): PlayedList {
    const world = createWorld({ ...setting, minutes }, own)
    // The first walk is over, and missed nothing; but it has seen that the list moves.
    const { total, lastPage } = world.size()
    const walked = complete({ startedAt: 0, endedAt: 1, lastPage, totals: { first: total, last: total } })
    const nextWalk = DAY * (settings.length > 1 ? own.next() : 1)
    const { arrivals } = setting
    return { world, state: afterFullWalk(null, walked), arrivals, walk: null, nextWalk, found: [] }
  }

  /** One request takes as long as the limit says. */
  function read(list: PlayedList, page: number) {
    counts.requests++
    if (isRefreshing) {
      sent.push(time)
      share = agedShare(share, rules, nowMs())
      share.level++
    }
    list.world.passTo(time)
    at = Math.max(at + 1, nowMs())
    const answer = list.world.read(page, time, at)
    if (answer.added > 0) list.found.push({ at, count: answer.added })
    time += 1 / limit
    return { ...answer, at, next: page < answer.lastPage ? page + 1 : null }
  }

  function readNewest(list: PlayedList): void {
    if (isWalkedWhole(list.state)) {
      do walkOn(list)
      while (list.walk)
      return
    }
    const [startedAt, startedTime] = [nowMs(), time]
    const isVictim = random.chance(killed)
    const isFound = (one: { at: number }) => one.at > list.state.settledAt
    const reading = readEnds<number>(list.state, RULES, startedAt)
    let step = reading.next()
    while (!step.done) {
      const answer = read(list, step.value)
      if (isVictim && random.chance(0.3)) {
        list.state.freshness = { ...list.state.freshness, newestAt: startedAt }
        return
      }
      const found = list.found.filter(isFound).reduce((sum, one) => sum + one.count, 0)
      step = reading.next({ ...answer, found })
    }
    list.state = step.value.state
    list.found = list.found.filter(isFound)
    counts.finished++
    if (list.state.freshAsOf === startedAt && list.world.missingOf(startedTime) > 0) counts.untrue++
  }

  function readOlder(list: PlayedList, reading: Reading): void {
    const { places, lastPage, older, freshness } = list.state
    const isLast = newestEnd(places, RULES.newest) === 'last'
    const { added, changed } = read(list, isLast ? Math.max(1, lastPage - reading.depth + 1) : reading.depth)
    const known = afterOlder(freshness, reading, added + changed, lastPage, nowMs())
    list.state = { ...list.state, older: older + added, freshness: known }
  }

  const asKnown = (played: PlayedList) => {
    const pace = { every: EVERY * MINUTE_MS, walkEvery: DAY * MINUTE_MS }
    return { ...played.state, ...pace, played, isWalked: played.walk !== null }
  }

  /** Reads what is due. False: nothing is. */
  function refreshAny(): boolean {
    share = agedShare(share, rules, nowMs())
    const next = nextReading(lists.map(asKnown), share, rules, nowMs())
    if (!next) return false
    const { played } = next.list
    isRefreshing = true
    if (next.reading.band === null) readNewest(played)
    else
      for (let [reading, pages]: [Reading | null, number] = [next.reading, 1]; reading; pages++) {
        readOlder(played, reading)
        reading = nextOfVisit(asKnown(played), share, rules, pages, nowMs())
      }
    isRefreshing = false
    return true
  }

  function walkOn(list: PlayedList): void {
    list.walk ??= { startedAt: nowMs(), page: 1, firstTotal: list.world.size().total, added: 0, changed: 0 }
    const { walk } = list
    const { total, lastPage, added, changed } = read(list, walk.page)
    if (walk.page === 1) walk.firstTotal = total
    walk.added += added
    walk.changed += changed
    if (walk.page++ < lastPage) return
    const { startedAt, firstTotal } = walk
    const totals = { first: firstTotal, last: total }
    list.state = afterFullWalk(
      list.state,
      complete({ startedAt, endedAt: at, lastPage, totals, written: walk }),
    )
    list.nextWalk = Math.max(time, startedAt / MINUTE_MS + DAY)
    list.walk = null
  }

  let turn = 0
  /** A page of one of the walks that are due, in turn. */
  function walkAny(): boolean {
    for (let tries = 0; tries < lists.length; tries++) {
      const list = lists[turn++ % lists.length]
      if (!list || (!list.walk && time < list.nextWalk)) continue
      walkOn(list)
      return true
    }
    return false
  }

  function playTo(end: number): void {
    while (time < end) if (!refreshAny() && !walkAny()) time += LOOK
    for (const { world } of lists) world.passTo(time)
  }

  playTo(BEFORE * DAY)
  for (const { world } of lists) world.measureFrom(time)
  counts.requests = 0
  sent = []
  playTo(minutes)
  const measured = lists.map(({ arrivals, world }) => ({ arrivals, ...world.measured(time) }))
  return {
    newAges: measured.flatMap(({ newAges }) => newAges),
    changedAges: measured.flatMap(({ changedAges }) => changedAges),
    wrongRows: measured.reduce((sum, { wrongRows }) => sum + wrongRows, 0),
    requestsPerDay: counts.requests / days,
    refreshesPerDay: sent.length / days,
    refreshes: counts.finished,
    untrue: counts.untrue,
    fullestHour: mostInAnHour(sent) / ((HOUR * limit * SHARE) / 100),
    lists: measured,
  }
}

/** `found` counts what is new by its time. */
function complete(walk: Omit<CompleteWalk, 'scope' | 'rowsAdded' | 'isSteady'>): CompleteWalk {
  return { scope: '', rowsAdded: { first: 0, last: 0 }, isSteady: false, ...walk }
}

function mostInAnHour(times: readonly number[]): number {
  let first = 0
  let most = 0
  for (const [index, time] of times.entries()) {
    while (time - (times[first] ?? time) >= HOUR) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}
