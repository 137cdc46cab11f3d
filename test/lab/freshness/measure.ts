import {
  addedElsewhere,
  afterFullWalk,
  readEnds,
  type RefreshState,
} from '../../../src/sync/refresh/state.ts'
import {
  afterOlder,
  isWalkedWhole,
  levelAt,
  nextReading,
  pageOf,
  type Reading,
  shareOf,
} from '../../../src/sync/refresh/worth.ts'
import { fullWalk } from '../../helpers/full-walk.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { World, type WorldSetting } from './world.ts'

/** Lists of one token, refreshed by the program's own decisions beside a walk a day. */
export interface Line {
  lists: readonly WorldSetting[]
  /** Requests a minute. */
  limit: number
  /** Days that are measured, after BEFORE of them in which it becomes what it is in the long run. */
  days?: number
}

const BEFORE = 2
const SHARE = 10
const HOUR = 60
const DAY = 24 * HOUR
const MINUTE_MS = 60_000
const PACE = { every: 5 * MINUTE_MS }
/** As often as the program looks for what is due. Minutes. */
const LOOK = 5 / 60

interface PlayedList {
  world: World
  state: RefreshState
  walk: { startedAt: number; page: number; total: number; rowsAdded: number } | null
  nextWalk: number
}

/** A list as the program compares it with others. */
function asKnown(played: PlayedList) {
  return { ...played.state, ...PACE, played, isWalked: played.walk !== null }
}

/** Times are minutes, those of the program milliseconds. */
export function measureFreshness(line: Line, seed: number) {
  const { limit, days = 3 } = line
  const random = createRandom(seed)
  const perMinute = shareOf(limit, SHARE)
  let [time, turn, requests, refreshes, untrue] = [0, 0, 0, 0, 0]
  /** When requests of refreshes were sent. */
  let sent: number[] = []
  let share = { at: 0, level: 0 }
  let isRefreshing = false
  const nowMs = () => Math.round(time * MINUTE_MS)
  const level = () => levelAt(share, perMinute, nowMs())
  const lists = line.lists.map((setting) => begin(setting, random.fork()))

  function begin(setting: WorldSetting, own: Random): PlayedList {
    const world = new World(setting, (BEFORE + days) * DAY, own)
    const nextWalk = DAY * (line.lists.length > 1 ? own.next() : 1)
    // The first walk is over, and missed nothing.
    const state = afterWalk(null, world, { startedAt: 0, total: world.total, rowsAdded: 0 })
    return { world, state, walk: null, nextWalk }
  }

  /** Each walk has seen that the list moves. */
  function afterWalk(
    before: RefreshState | null,
    { total, lastPage, rowsAdded }: World,
    first: Omit<NonNullable<PlayedList['walk']>, 'page'>,
  ): RefreshState {
    const totals = { first: first.total, last: total }
    const added = { first: first.rowsAdded, last: rowsAdded }
    const { startedAt } = first
    const times = { startedAt, endedAt: nowMs(), lastPage }
    return afterFullWalk(before, fullWalk({ ...times, coverage: 'repaired', totals, rowsAdded: added }))
  }

  /** One request takes as long as the limit says. */
  function read(list: PlayedList, page: number) {
    requests++
    if (isRefreshing) {
      sent.push(time)
      share = { at: nowMs(), level: level() + 1 }
    }
    list.world.passTo(time)
    const at = nowMs()
    const answer = list.world.read(page, time, at)
    time += 1 / limit
    const next = page < answer.lastPage ? page + 1 : null
    return { ...answer, page, at, next, rejected: 0 }
  }

  function readNewest(list: PlayedList): void {
    if (isWalkedWhole(list.state)) {
      do walkOn(list)
      while (list.walk)
      return
    }
    const [startedAt, startedTime] = [nowMs(), time]
    const reading = readEnds<number>(list.state, 'auto', startedAt)
    let step = reading.next()
    while (!step.done) step = reading.next(read(list, step.value))
    list.state = step.value.state
    refreshes++
    if (list.state.freshAsOf === startedAt && list.world.missingOf(startedTime) > 0) untrue++
  }

  /** Reads what is due. False: nothing is. */
  function refreshAny(): boolean {
    const next = nextReading(lists.map(asKnown), level(), perMinute, nowMs())
    if (!next) return false
    const { played } = next.list
    let reading: Reading | null = next.reading
    isRefreshing = true
    if (reading.band === null) readNewest(played)
    else
      for (let pages = 1; reading; pages++) {
        const { added, changed } = read(played, pageOf(played.state, reading))
        const known = afterOlder(played.state, reading, added + changed, nowMs())
        played.state = addedElsewhere(known, added)
        reading = nextReading([asKnown(played)], level(), perMinute, nowMs(), pages)?.reading ?? null
      }
    isRefreshing = false
    return true
  }

  function walkOn(list: PlayedList): void {
    const { world } = list
    list.walk ??= { startedAt: nowMs(), page: 1, total: world.total, rowsAdded: world.rowsAdded }
    const { walk } = list
    const { lastPage } = read(list, walk.page)
    if (walk.page++ < lastPage) return
    list.state = afterWalk(list.state, world, walk)
    list.nextWalk = Math.max(time, walk.startedAt / MINUTE_MS + DAY)
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
  requests = 0
  sent = []
  playTo((BEFORE + days) * DAY)
  return {
    /** Refreshes that were finished, and those of them whose claim was not true. */
    refreshes,
    untrue,
    /** From when an item came until it was read, by list; minutes. */
    newAges: lists.map(({ world }) => world.newAges),
    /** Listed rows that are missing or outdated, at a random moment. */
    wrongRows: lists.reduce((sum, { world }) => sum + world.wrongRows(time, time - from), 0),
    requestsPerDay: requests / days,
    /** Those of refreshes; and in the hour that has most of them, in parts of the share. */
    refreshesPerDay: sent.length / days,
    fullestHour: mostInAnHour(sent) / (HOUR * perMinute),
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
