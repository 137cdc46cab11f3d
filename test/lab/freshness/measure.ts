import { dueLists, type KnownList, olderWanted, type RefreshPolicy } from '../../../src/sync/refresh/due.ts'
import {
  charge,
  createShareUse,
  isWalkedWhole,
  newShare,
  priceOf,
  shareRules,
  turnOf,
} from '../../../src/sync/refresh/price.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { createListPlayer, type ListPlayer, type WrittenPage } from './list-player.ts'
import type { Order, Removals } from './living-list.ts'
import { createFreshnessMirror, type FreshnessMirror, type Measured } from './mirror.ts'
import type { Policy } from './policies.ts'
import { beginWalk, readNext, type Walk } from './walk.ts'
import { type Steps, type WorkersSetting, workInTurn } from './workers.ts'
import { createWorld, type World, type WorldSetting } from './world.ts'

export interface ListSetting extends Omit<WorldSetting, 'minutes'> {
  order: Order
  removals: Removals
}

export interface TokenSetting extends WorkersSetting {
  lists: readonly ListSetting[]
  /** Requests a minute. */
  limit: number
  /** Days in which it becomes what it is in the long run, and those that are measured then. */
  before: number
  days: number
  /** The share of refreshes whose process is killed behind one of their pages, if they have several. */
  killed: number
}

/** A token with one list. */
export type FreshnessSetting = ListSetting & Omit<TokenSetting, 'lists' | 'workers' | 'killedSteps'>

export function oneList({ limit, before, days, killed, ...list }: FreshnessSetting): TokenSetting {
  return { lists: [list], limit, before, days, killed, workers: 1, killedSteps: 0 }
}

export interface Freshness extends Measured {
  requestsPerDay: number
  /** Those of refreshes. */
  refreshesPerDay: number
  /** Refreshes that were finished, and those of them whose claim was not true. */
  refreshes: number
  untrue: number
  /** Requests of refreshes in the hour that has most of them, in parts of the share. */
  fullestHour: number
  /** Workers that were killed, and readings of refreshes that were lost by it. */
  kills: number
  lost: number
  lists: readonly { arrivals: number; newAges: readonly number[] }[]
}

const HOUR = 60
const DAY = 24 * HOUR
const MINUTE_MS = 60_000

interface PlayedList {
  setting: ListSetting
  world: World
  mirror: FreshnessMirror
  player: ListPlayer
  read(page: number): Steps<WrittenPage>
  /** The worker that reads it; null: none does. */
  heldBy: Worker | null
  walk: Walk | null
  /** Of the last complete one. */
  coverage: Coverage | null
  nextWalk: number
  /** Between two pages of a walk, at most one older page is read. */
  mayReadOlder: boolean
}

/** A process beside others. */
interface Worker {
  share: RefreshPolicy['share']
  isRefreshing: boolean
  /** Requests that it sent, and when the last one is answered. */
  requests: number
  answeredAt: number
}

/** The lists of one token under a policy. Times are minutes. */
export function measureFreshness(policy: Policy, setting: TokenSetting, seed: number): Freshness {
  const { limit, killed, before, days } = setting
  const random = createRandom(seed)
  const minutes = (before + days) * DAY
  const rules = shareRules(limit, policy.share)
  const gap = 1 / limit
  const counts = { requests: 0, finished: 0, untrue: 0, kills: 0, lost: 0 }
  /** When requests of refreshes were sent. */
  let sent: number[] = []
  let time = 0
  /** When the limit permits the next request. */
  let permittedAt = 0
  let at = 0
  let share = newShare(0)
  const nowMs = () => Math.round(time * MINUTE_MS)
  const newWorker = (): Worker => {
    const store = { shares: async () => [], writeShare: async () => true }
    const use = createShareUse(store, '', () => rules, nowMs)
    return { share: use, isRefreshing: false, requests: 0, answeredAt: 0 }
  }
  const workers = Array.from({ length: setting.workers }, newWorker)
  /** Who is at work at this moment. */
  let worker = workers[0] ?? newWorker()
  const lists = setting.lists.map((list) => createList(list, random.fork()))

  function createList(list: ListSetting, own: Random): PlayedList {
    let mirror: FreshnessMirror | null = null
    const world = createWorld({ ...list, minutes }, own, {
      onAdd(id, when) {
        mirror?.onAdd(id, when)
      },
      onChange(id, when) {
        mirror?.onChange(id, when)
      },
      onRemove(id, when) {
        mirror?.onRemove(id, when)
      },
    })
    const known = createFreshnessMirror(world.bornBefore)
    mirror = known
    /** A permit counts as sent, also if the worker is killed before the answer. */
    function* read(page: number): Steps<WrittenPage> {
      const permit = Math.max(time, permittedAt)
      permittedAt = permit + gap
      worker.answeredAt = permittedAt
      worker.requests++
      counts.requests++
      if (worker.isRefreshing) sent.push(permit)
      yield permit
      world.passTo(time)
      const served = world.pageAt(page)
      at = Math.max(at + 1, nowMs())
      const written = known.write(served.ids, time, at)
      return { ...served, ...written, at }
    }
    const { refreshEvery, walkEvery } = policy
    const turn = turnOf(setting.lists.length, rules)
    const pace = { every: (refreshEvery ?? 0) * MINUTE_MS, turn, walkEvery: walkEvery * MINUTE_MS }
    // The first walk is over, and missed nothing; but it has seen that the list moves.
    const { total, lastPage } = world.pageAt(1)
    const walked = {
      startedAt: 0,
      endedAt: 1,
      lastPage,
      totals: { first: total, last: total },
      isSteady: false,
    }
    const player = createListPlayer(pace, read, walked)
    const nextWalk = policy.walkEvery * (setting.lists.length > 1 ? own.next() : 1)
    return {
      setting: list,
      world,
      mirror: known,
      player,
      read,
      heldBy: null,
      walk: null,
      coverage: 'repaired',
      nextWalk,
      mayReadOlder: true,
    }
  }

  function passShare(): void {
    worker.share.note({ ...share, budgetKey: '', version: 1 })
    share = worker.share.known()
  }

  /** Charges a reading of refreshes: what is expected before it, and what it really sent after. */
  function* counted<T>(list: PlayedList, expected: number, reading: () => Steps<T>): Steps<T> {
    passShare()
    share = charge(share, rules, expected)
    const sentBefore = worker.requests
    list.heldBy = worker
    worker.isRefreshing = true
    const result = yield* reading()
    worker.isRefreshing = false
    if (!list.walk) list.heldBy = null
    passShare()
    share = charge(share, rules, worker.requests - sentBefore - expected)
    return result
  }

  function* readNewest(list: PlayedList): Steps {
    const { player, mirror } = list
    const [startedAt, startedMs] = [time, nowMs()]
    const { lastPage } = player.state()
    if (isWalkedWhole({ lastPage })) {
      yield* counted(list, lastPage + 1, function* () {
        do yield* walkOn(list)
        while (list.walk)
      })
      return
    }
    const isVictim = random.chance(killed)
    const isFinished = yield* counted(list, 2, () =>
      player.refresh(startedMs, priceOf(share), () => isVictim && random.chance(0.3)),
    )
    if (!isFinished) return
    counts.finished++
    const isClaimed = player.state().freshAsOf === startedMs
    if (isClaimed && mirror.missingOf(startedAt) > 0) counts.untrue++
  }

  /** A list as `dueLists` knows it. */
  function asKnown(list: PlayedList): KnownList<PlayedList> {
    const { player } = list
    return { list, policy: policyOf(player), state: player.state(), failed: {}, isRead: !isFree(list) }
  }

  const policyOf = ({ pace }: ListPlayer): RefreshPolicy => ({ ...pace, share: worker.share })

  /** Reads older pages of a list as far as the share has room; beside a walk, one between two of its pages. */
  function* visit(list: PlayedList): Steps {
    const { player } = list
    for (let goesOn = list.walk !== null; ; goesOn = true) {
      passShare()
      if (olderWanted(share, player.state(), policyOf(player), nowMs(), goesOn) === 0) return
      yield* counted(list, 1, () => player.readOlder(priceOf(share), rules.chunk, nowMs()))
      list.mayReadOlder = false
      if (list.walk) return
    }
  }

  /** Reads what is due. False: nothing is. */
  function* refreshAny(): Steps<boolean> {
    if (policy.refreshEvery === null) return false
    passShare()
    const [next] = dueLists(lists.map(asKnown), nowMs())
    if (next?.reads === 'newest') {
      yield* readNewest(next.list)
      return true
    }
    if (!policy.readsOlder) return false
    const requestsBefore = worker.requests
    const beside = lists.find((list) => list.heldBy === worker && list.walk && list.mayReadOlder)
    if (beside) yield* visit(beside)
    if (next && !next.list.walk) yield* visit(next.list)
    return worker.requests > requestsBefore
  }

  function isFree({ heldBy }: PlayedList): boolean {
    return heldBy === null || heldBy === worker
  }

  function* walkOn(list: PlayedList): Steps {
    const { player, read } = list
    const walk = list.walk ?? beginWalk(time, list.coverage)
    list.walk = walk
    list.heldBy = worker
    const complete = yield* readNext(walk, read, (page, number) => {
      player.onWalkedPage(page, number, priceOf(share))
      list.mayReadOlder = true
    })
    if (!complete) return
    player.onWalk(complete)
    list.nextWalk = Math.max(time, walk.startedAt + policy.walkEvery)
    list.coverage = complete.coverage
    list.walk = null
    list.heldBy = null
  }

  let turn = 0
  /** A page of one of the walks that are due, in turn. */
  function* walkAny(): Steps<boolean> {
    for (let tries = 0; tries < lists.length; tries++) {
      const list = lists[turn++ % lists.length]
      if (!list || !isFree(list)) continue
      if (!list.walk && time < list.nextWalk) continue
      yield* walkOn(list)
      return true
    }
    return false
  }

  function* work(): Steps {
    for (;;) {
      const hasRead = (yield* refreshAny()) || (yield* walkAny())
      // As often as the program looks.
      yield hasRead ? Math.max(time, worker.answeredAt) : time + 5 / 60
    }
  }

  function onKill(index: number): void {
    counts.kills++
    const victim = workers[index]
    if (victim?.isRefreshing) counts.lost++
    for (const list of lists) if (list.heldBy === victim) list.heldBy = null
    workers[index] = newWorker()
  }

  let isMeasured = false
  for (const next of workInTurn(setting, createRandom(seed), work, onKill)) {
    time = next.time
    worker = workers[next.worker] ?? worker
    if (time >= minutes) break
    if (isMeasured || time < before * DAY) continue
    isMeasured = true
    for (const { world, mirror } of lists) {
      world.passTo(time)
      mirror.measureFrom(time)
    }
    Object.assign(counts, { requests: 0, kills: 0, lost: 0 })
    sent = []
  }
  const measured = lists.map(({ setting: { arrivals }, world, mirror }) => {
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
    fullestHour: mostInAnHour(sent) / ((HOUR * limit * policy.share) / 100),
    kills: counts.kills,
    lost: counts.lost,
    lists: measured,
  }
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
