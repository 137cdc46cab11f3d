import { createRandom } from '../../simulation/random.ts'
import type { Order, Removals } from './living-list.ts'
import { createFreshnessMirror, type FreshnessMirror, type Measured } from './mirror.ts'
import type { Policy } from './policies.ts'
import { createRefresher, type WrittenPage } from './refresher.ts'
import { createWorld, type World } from './world.ts'

export interface FreshnessSetting {
  order: Order
  removals: Removals
  life: string
  rows: number
  /** Requests a minute. */
  limit: number
  /** Items that come a minute, and as many go. */
  arrivals: number
  days: number
  /** The share of refreshes whose process is killed behind one of their pages, if they have several. */
  killed: number
}

export interface Freshness extends Measured {
  requestsPerDay: number
  /** Refreshes that were finished, and those of them whose claim was not true. */
  refreshes: number
  untrue: number
}

const DAY = 24 * 60
const MINUTE_MS = 60_000

/** One list under a policy. The second half of the days is measured; before, it becomes what it is in the long run. */
export function measureFreshness(policy: Policy, setting: FreshnessSetting, seed: number): Freshness {
  const { order, removals, life, rows, arrivals, days, limit, killed } = setting
  const random = createRandom(seed)
  const minutes = days * DAY
  let mirror: FreshnessMirror | null = null
  const world: World = createWorld({ order, removals, life, rows, arrivals, minutes }, random.fork(), {
    onAdd: (id, time) => mirror?.onAdd(id, time),
    onChange: (id, time) => mirror?.onChange(id, time),
    onRemove: (id, time) => mirror?.onRemove(id, time),
  })
  const known = createFreshnessMirror(world.bornBefore)
  mirror = known
  const gap = 1 / limit
  const counts = { requests: 0, refreshes: 0, untrue: 0 }
  let time = 0
  let at = 0

  function read(page: number): WrittenPage {
    world.passTo(time)
    const { ids, total, lastPage } = world.pageAt(page)
    at = Math.max(at + 1, Math.round(time * MINUTE_MS))
    const { seen, added } = known.write(ids, time, at)
    refresher.onAdded(added, at)
    time += gap
    counts.requests++
    return { ids, seen, added, total, lastPage, at }
  }

  const refresher = createRefresher(policy, limit, read)
  // The first walk is over, and missed nothing; but it has seen that the list moves.
  const { total, lastPage } = world.pageAt(1)
  refresher.onWalk({
    startedAt: 0,
    endedAt: 1,
    lastPage,
    totals: { first: total, last: total },
    isSteady: false,
  })
  let walk: { startedAt: number; page: number; total: number | null; isSteady: boolean } | null = null
  let nextWalk = policy.walkEvery
  let mayReadOlder = true
  let isMeasured = false

  function refresh(): void {
    const startedAt = time
    const startedMs = Math.round(startedAt * MINUTE_MS)
    const isVictim = random.chance(killed)
    if (!refresher.refresh(startedMs, () => isVictim && random.chance(0.3))) return
    counts.refreshes++
    // What a full walk missed is its own coverage's to say.
    if (refresher.freshAsOf() === startedMs && known.missingSince(startedAt) > 0) counts.untrue++
  }

  function walkOn(): void {
    walk ??= { startedAt: time, page: 1, total: null, isSteady: true }
    const answer = read(walk.page)
    walk.total ??= answer.total
    walk.isSteady &&= walk.total === answer.total
    if (walk.page < answer.lastPage) walk.page++
    else {
      const startedAt = Math.round(walk.startedAt * MINUTE_MS)
      const totals = { first: walk.total, last: answer.total }
      const { isSteady } = walk
      refresher.onWalk({ startedAt, endedAt: at, lastPage: answer.lastPage, totals, isSteady })
      nextWalk = Math.max(time, walk.startedAt + policy.walkEvery)
      walk = null
    }
  }

  function step(): void {
    if (refresher.isDue(Math.round(time * MINUTE_MS))) refresh()
    else if (mayReadOlder && refresher.readOlder()) mayReadOlder = walk === null
    else if (walk || time >= nextWalk) {
      walkOn()
      mayReadOlder = true
    } else time = Math.max(time + 1e-4, Math.min(nextWalk, refresher.nextAt() / MINUTE_MS))
  }

  while (time < minutes) {
    step()
    if (!isMeasured && time >= minutes / 2) {
      isMeasured = true
      world.passTo(time)
      known.measureFrom(time)
      counts.requests = 0
    }
  }
  world.passTo(minutes)
  const { requests, refreshes, untrue } = counts
  return { ...known.measured(time), requestsPerDay: requests / (days / 2), refreshes, untrue }
}
