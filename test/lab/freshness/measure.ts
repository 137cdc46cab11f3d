import {
  afterFullWalk,
  type CompleteWalk,
  type RefreshState,
  readEnds,
} from '../../../src/sync/refresh/state.ts'
import {
  afterOlder,
  isWalkedWhole,
  levelAt,
  nextOfVisit,
  nextReading,
  pageOf,
  type Reading,
  shareOf,
} from '../../../src/sync/refresh/worth.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { World, type WorldSetting } from './world.ts'

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

export type Freshness = ReturnType<typeof measureFreshness>

const BEFORE = 2
const SHARE = 10
const EVERY = 5
const HOUR = 60
const DAY = 24 * HOUR
const MINUTE_MS = 60_000
/** As often as the program looks for what is due. Minutes. */
const LOOK = 5 / 60

interface PlayedList {
  world: World
  state: RefreshState
  arrivals: number
  walk: { startedAt: number; page: number; firstTotal: number; added: number } | null
  nextWalk: number
  /** Rows that were added, and when: what a refresh counts as found. */
  found: { at: number; count: number }[]
}

/** Times are minutes, those of the program milliseconds. */
export function measureFreshness(line: Line, seed: number) {
  const { lists: settings, limit, killed = 0, days = 3 } = line
  const random = createRandom(seed)
  const minutes = (BEFORE + days) * DAY
  const perMinute = shareOf(limit, SHARE)
  const counts = { requests: 0, refreshes: 0, untrue: 0 }
  /** When requests of refreshes were sent. */
  let sent: number[] = []
  let share = { at: 0, level: 0 }
  let [time, at, turn] = [0, 0, 0]
  let isRefreshing = false
  const nowMs = () => Math.round(time * MINUTE_MS)
  const level = () => levelAt(share, perMinute, nowMs())
  const lists = settings.map((setting) => begin(setting, random.fork()))

  function begin(setting: Line['lists'][number], own: Random): PlayedList {
    const world = new World({ ...setting, minutes }, own)
    // The first walk is over, and missed nothing; but it has seen that the list moves.
    const { total, lastPage } = world
    const state = afterFullWalk(null, complete(0, 1, lastPage, { first: total, last: total }))
    const nextWalk = DAY * (settings.length > 1 ? own.next() : 1)
    return { world, state, arrivals: setting.arrivals, walk: null, nextWalk, found: [] }
  }

  /** One request takes as long as the limit says. */
  function read(list: PlayedList, page: number) {
    counts.requests++
    if (isRefreshing) {
      sent.push(time)
      share = { at: nowMs(), level: level() + 1 }
    }
    list.world.passTo(time)
    at = Math.max(at + 1, nowMs())
    const answer = list.world.read(page, time, at)
    if (answer.added > 0) list.found.push({ at, count: answer.added })
    time += 1 / limit
    return { ...answer, page, at, next: page < answer.lastPage ? page + 1 : null }
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
    const reading = readEnds<number>(list.state, { total: 'check', newest: 'auto' }, startedAt)
    let step = reading.next()
    while (!step.done) {
      const answer = read(list, step.value)
      if (isVictim && random.chance(0.3)) {
        list.state = { ...list.state, newestAt: startedAt }
        return
      }
      const found = list.found.filter(isFound).reduce((sum, one) => sum + one.count, 0)
      step = reading.next({ ...answer, found })
    }
    list.state = step.value.state
    list.found = list.found.filter(isFound)
    counts.refreshes++
    if (list.state.freshAsOf === startedAt && list.world.missingOf(startedTime) > 0) counts.untrue++
  }

  function readOlder(list: PlayedList, reading: Reading): void {
    const { added, changed } = read(list, pageOf(list.state, reading))
    const older = list.state.older + added
    list.state = afterOlder({ ...list.state, older }, reading, added + changed, nowMs())
  }

  const asKnown = (played: PlayedList) => {
    const pace = { every: EVERY * MINUTE_MS, walkEvery: DAY * MINUTE_MS }
    return { ...played.state, ...pace, played, isWalked: played.walk !== null }
  }

  /** Reads what is due. False: nothing is. */
  function refreshAny(): boolean {
    const next = nextReading(lists.map(asKnown), level(), perMinute, nowMs())
    if (!next) return false
    const { played } = next.list
    isRefreshing = true
    let reading: Reading | null = next.reading
    if (reading.band === null) readNewest(played)
    else
      for (let pages = 1; reading; pages++) {
        readOlder(played, reading)
        reading = nextOfVisit(asKnown(played), level(), perMinute, pages, nowMs())
      }
    isRefreshing = false
    return true
  }

  function walkOn(list: PlayedList): void {
    list.walk ??= { startedAt: nowMs(), page: 1, firstTotal: list.world.total, added: 0 }
    const { walk } = list
    const { total, lastPage, added } = read(list, walk.page)
    if (walk.page === 1) walk.firstTotal = total
    walk.added += added
    if (walk.page++ < lastPage) return
    const { startedAt, firstTotal } = walk
    const walked = complete(startedAt, at, lastPage, { first: firstTotal, last: total }, walk.added)
    list.state = afterFullWalk(list.state, walked)
    list.nextWalk = Math.max(time, startedAt / MINUTE_MS + DAY)
    list.walk = null
  }

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
  const from = time
  for (const { world } of lists) world.measureFrom(time)
  counts.requests = 0
  sent = []
  playTo(minutes)
  return {
    /** Refreshes that were finished, and those of them whose claim was not true. */
    refreshes: counts.refreshes,
    untrue: counts.untrue,
    /** From when an item came until it was read, and from each change; minutes. */
    newAges: lists.flatMap(({ world }) => world.newAges),
    changedAges: lists.flatMap(({ world }) => world.changedAges),
    /** Listed rows that are missing or outdated, at a random moment. */
    wrongRows: lists.reduce((sum, { world }) => sum + world.wrongRows(time, time - from), 0),
    requestsPerDay: counts.requests / days,
    /** Those of refreshes; and in the hour that has most of them, in parts of the share. */
    refreshesPerDay: sent.length / days,
    fullestHour: mostInAnHour(sent) / (HOUR * perMinute),
    lists: lists.map(({ arrivals, world: { newAges } }) => ({ arrivals, newAges })),
  }
}

/** `found` counts what is new by its time: `rowsAdded` tells only how often rows come to a short list. */
function complete(
  startedAt: number,
  endedAt: number,
  lastPage: number,
  totals: CompleteWalk['totals'],
  added = 0,
): CompleteWalk {
  const rowsAdded = { first: 0, last: added }
  return {
    scope: '',
    startedAt,
    endedAt,
    coverage: 'repaired',
    lastPage,
    totals,
    addedBehindAt: null,
    rowsAdded,
  }
}

function mostInAnHour(times: readonly number[]): number {
  let [first, most] = [0, 0]
  for (const [index, time] of times.entries()) {
    while (time - (times[first] ?? time) >= HOUR) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}
