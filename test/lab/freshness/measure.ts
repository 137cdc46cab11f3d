import {
  afterFullWalk,
  type CompleteWalk,
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
  type SharingList,
  shareRules,
} from '../../../src/sync/refresh/worth.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { createFreshnessMirror, type FreshnessMirror, type Measured } from './mirror.ts'
import { createWorld, type ServedPage, type World, type WorldSetting } from './world.ts'

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

interface WrittenPage extends ServedPage {
  seen: ReturnType<FreshnessMirror['write']>['seen']
  added: number
  changed: number
  at: number
}

interface Walk {
  startedAt: number
  page: number
  firstTotal: number | null
  added: number
  changed: number
}

interface PlayedList {
  world: World
  mirror: FreshnessMirror
  state: RefreshState
  arrivals: number
  walk: Walk | null
  nextWalk: number
  /** Rows that were added, and when: what a refresh counts as found. */
  found: { at: number; count: number }[]
  /** Between two pages of a walk, at most one older page is read. */
  mayReadOlder: boolean
}

/** Times are minutes, those of the program milliseconds. */
export function measureFreshness(
  { lists: settings, limit, killed = 0, days = 3 }: Line,
  seed: number,
): Freshness {
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
  const lists = settings.map((setting) => createList(setting, random.fork()))

  function createList(setting: Line['lists'][number], own: Random): PlayedList {
    let mirror: FreshnessMirror | null = null
    const world = createWorld({ ...setting, minutes }, own, {
      onAdd: (id, when) => mirror?.onAdd(id, when),
      onChange: (id, when) => mirror?.onChange(id, when),
      onRemove: (id, when) => mirror?.onRemove(id, when),
    })
    mirror = createFreshnessMirror(world.bornBefore)
    // The first walk is over, and missed nothing; but it has seen that the list moves.
    const { total, lastPage } = world.pageAt(1)
    const walked = {
      startedAt: 0,
      endedAt: 1,
      lastPage,
      totals: { first: total, last: total },
      isSteady: false,
    }
    return {
      world,
      mirror,
      state: afterFullWalk(null, complete(walked)),
      arrivals: setting.arrivals,
      walk: null,
      nextWalk: DAY * (settings.length > 1 ? own.next() : 1),
      found: [],
      mayReadOlder: true,
    }
  }

  /** One request takes as long as the limit says. */
  function read(list: PlayedList, page: number): WrittenPage {
    counts.requests++
    if (isRefreshing) {
      sent.push(time)
      share = { ...agedShare(share, rules, nowMs()) }
      share.level++
    }
    list.world.passTo(time)
    at = Math.max(at + 1, nowMs())
    const served = list.world.pageAt(page)
    const written = list.mirror.write(served.ids, time, at)
    if (written.added > 0) list.found.push({ at, count: written.added })
    time += 1 / limit
    return { ...served, ...written, at }
  }

  function readNewest(list: PlayedList): void {
    const startedAt = nowMs()
    const startedTime = time
    if (isWalkedWhole(list.state)) {
      do walkOn(list)
      while (list.walk)
      return
    }
    const isVictim = random.chance(killed)
    const { settledAt } = list.state
    const reading = readEnds<number>(list.state, RULES, startedAt)
    let step = reading.next()
    while (!step.done) {
      const { value: page } = step
      const answer = read(list, page)
      if (isVictim && random.chance(0.3)) {
        list.state.freshness = { ...list.state.freshness, newestAt: startedAt }
        return
      }
      const { ids, seen, total, lastPage } = answer
      const items = ids.map((id, index) => ({ id, seen: seen[index] ?? null }))
      const found = list.found.reduce((sum, one) => sum + (one.at > settledAt ? one.count : 0), 0)
      step = reading.next({
        at: answer.at,
        total,
        next: page < lastPage ? page + 1 : null,
        lastPage,
        items,
        found,
      })
    }
    list.state = step.value.state
    list.found = list.found.filter((one) => one.at > list.state.settledAt)
    counts.finished++
    if (list.state.freshAsOf === startedAt && list.mirror.missingOf(startedTime) > 0) counts.untrue++
  }

  function readOlder(list: PlayedList, reading: Reading): void {
    const { state } = list
    const page = state.places.last > state.places.first ? state.lastPage - reading.depth + 1 : reading.depth
    const { added, changed } = read(list, Math.max(1, page))
    const freshness = afterOlder(state.freshness, reading, added + changed, state.lastPage, nowMs())
    list.state = { ...state, older: state.older + added, freshness }
    list.mayReadOlder = false
  }

  const asKnown = (list: PlayedList): SharingList & { played: PlayedList } => ({
    played: list,
    freshness: list.state.freshness,
    lastPage: list.state.lastPage,
    shown: list.state.shown,
    every: EVERY * MINUTE_MS,
    walkEvery: DAY * MINUTE_MS,
    isWalked: list.walk !== null,
  })

  /** Reads what is due. False: nothing is. */
  function refreshAny(): boolean {
    share = agedShare(share, rules, nowMs())
    const next = nextReading(lists.map(asKnown), share, rules, nowMs())
    if (!next) return false
    const { played: list } = next.list
    if (next.reading.band !== null && list.walk && !list.mayReadOlder) return false
    isRefreshing = true
    if (next.reading.band === null) readNewest(list)
    else {
      let reading: Reading | null = next.reading
      for (let pages = 1; reading; pages++) {
        readOlder(list, reading)
        reading = list.walk ? null : nextOfVisit(asKnown(list), share, rules, pages, nowMs())
      }
    }
    isRefreshing = false
    return true
  }

  function walkOn(list: PlayedList): void {
    list.walk ??= { startedAt: nowMs(), page: 1, firstTotal: null, added: 0, changed: 0 }
    const { walk } = list
    const { total, lastPage, added, changed } = read(list, walk.page)
    walk.firstTotal ??= total
    walk.added += added
    walk.changed += changed
    list.mayReadOlder = true
    if (walk.page++ < lastPage) return
    const { startedAt, firstTotal } = walk
    const totals = { first: firstTotal, last: total }
    const ended = { startedAt, endedAt: at, lastPage, totals, isSteady: false, written: walk }
    list.state = afterFullWalk(list.state, complete(ended))
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

  for (let isMeasured = false; time < minutes; ) {
    if (!isMeasured && time >= BEFORE * DAY) {
      isMeasured = true
      for (const { world, mirror } of lists) {
        world.passTo(time)
        mirror.measureFrom(time)
      }
      counts.requests = 0
      sent = []
    }
    if (!refreshAny() && !walkAny()) time += LOOK
  }
  const measured = lists.map(({ arrivals, world, mirror }) => {
    world.passTo(minutes)
    return { arrivals, ...mirror.measured(Math.max(time, minutes)) }
  })
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
function complete(walk: Omit<CompleteWalk, 'scope' | 'rowsAdded'>): CompleteWalk {
  return { scope: '', rowsAdded: { first: 0, last: 0 }, ...walk }
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
