import { isAlarmed } from '../../../src/sync/refresh/alarm.ts'
import type { ChangesQuestion } from '../../../src/sync/refresh/changed-since.ts'
import { readMoment } from '../../../src/sync/refresh/moment.ts'
import {
  agedShare,
  charge,
  isWalkedWhole,
  LATE_MS,
  mayBegin,
  newShare,
  priceOf,
  shareRules,
  turnOf,
} from '../../../src/sync/refresh/price.ts'
import { createRandom, type Random } from '../../simulation/random.ts'
import { type ChangesSetting, createChanges, type ServedChanges } from './changes.ts'
import { createListPlayer, type ListPlayer, type WrittenPage } from './list-player.ts'
import type { Order, Removals } from './living-list.ts'
import { createFreshnessMirror, type FreshnessMirror, type Measured } from './mirror.ts'
import type { Policy } from './policies.ts'
import { createWorld, type World, type WorldSetting } from './world.ts'

export interface ListSetting extends Omit<WorldSetting, 'minutes'> {
  order: Order
  removals: Removals
  /** Absent: it is not asked for changes. */
  changes?: ChangesSetting | undefined
}

export interface TokenSetting {
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
export type FreshnessSetting = ListSetting & Omit<TokenSetting, 'lists'>

export function oneList({ limit, before, days, killed, ...list }: FreshnessSetting): TokenSetting {
  return { lists: [list], limit, before, days, killed }
}

export interface Freshness extends Measured {
  requestsPerDay: number
  /** Those of refreshes, and of these those for older pages. */
  refreshesPerDay: number
  olderPerDay: number
  changesPerDay: number
  /** Refreshes that were finished, and those of them whose claim was not true. */
  refreshes: number
  untrue: number
  /** Requests of refreshes in the hour that has most of them, in parts of the share. */
  fullestHour: number
  highestLevel: number
  lists: readonly { arrivals: number; newAges: readonly number[] }[]
}

const HOUR = 60
const DAY = 24 * HOUR
const MINUTE_MS = 60_000

/** A walk of a list that moves asks so often for a page again, so far back. */
const LOOK_EVERY = 32
const LOOK_BACK = 64

interface Walk {
  startedAt: number
  page: number
  answers: number
  total: number | null
  isSteady: boolean
  written: { added: number; changed: number }
}

interface PlayedList {
  setting: ListSetting
  world: World
  mirror: FreshnessMirror
  player: ListPlayer
  read(page: number): WrittenPage
  walk: Walk | null
  nextWalk: number
  /** Between two pages of a walk, at most one older page is read. */
  mayReadOlder: boolean
}

/** The lists of one token under a policy. Times are minutes. */
export function measureFreshness(policy: Policy, setting: TokenSetting, seed: number): Freshness {
  const { limit, killed, before, days } = setting
  const random = createRandom(seed)
  const minutes = (before + days) * DAY
  const rules = shareRules(limit, policy.share)
  const gap = 1 / limit
  const counts = { requests: 0, refreshes: 0, older: 0, changes: 0, finished: 0, untrue: 0 }
  let sent: number[] = []
  let time = 0
  let at = 0
  let share = newShare(0)
  let isLate = false
  let highestLevel = 0
  /** Whose older pages are being read. */
  let visited: PlayedList | null = null
  const lists = setting.lists.map((list) => createList(list, random.fork()))
  const nowMs = () => Math.round(time * MINUTE_MS)

  function createList(list: ListSetting, own: Random): PlayedList {
    let mirror: FreshnessMirror | null = null
    let changes: ServedChanges | null = null
    const world = createWorld({ ...list, minutes }, own, {
      onAdd(id, when) {
        mirror?.onAdd(id, when)
        changes?.onAdd(id, when)
      },
      onChange(id, when) {
        mirror?.onChange(id, when)
        changes?.onChange(id, when)
      },
      onRemove(id, when) {
        mirror?.onRemove(id, when)
        changes?.onRemove(id, when)
      },
    })
    const stored = new Map<number, number>()
    if (list.changes) {
      changes = createChanges(list.changes, world.bornBefore, world.pageAt, createRandom(seed))
      for (const id of world.bornBefore.keys()) stored.set(id, changes.changedAt(id))
    }
    const known = createFreshnessMirror(world.bornBefore)
    mirror = known
    function read(page: number, asked?: ChangesQuestion): WrittenPage {
      world.passTo(time)
      const since = readMoment(asked?.since)
      const served = since && changes ? changes.pageAt(since.ms, page, time) : world.pageAt(page)
      at = Math.max(at + 1, nowMs())
      // What changed is only updated.
      const ids = asked ? served.ids.filter(known.knows) : served.ids
      const written = known.write(ids, time, at)
      time += gap
      counts.requests++
      return {
        ...served,
        ...written,
        at,
        ...(changes ? shownBy(changes, served.ids, written.changedIds) : {}),
      }
    }
    function shownBy(served: ServedChanges, ids: readonly number[], changed: readonly number[]) {
      const momentOf = (id: number) => readMoment(new Date(served.changedAt(id)).toISOString())
      const changedRows = changed.map((id) => ({
        at: momentOf(id),
        isTouched: served.changedAt(id) !== stored.get(id),
      }))
      for (const id of ids) stored.set(id, served.changedAt(id))
      return { values: () => ids.map(momentOf), changedRows }
    }
    const { refreshEvery, walkEvery, alarm = false } = policy
    const turn = turnOf(setting.lists.length, rules)
    const pace = { every: (refreshEvery ?? 0) * MINUTE_MS, turn, walkEvery: walkEvery * MINUTE_MS, alarm }
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
    return { setting: list, world, mirror: known, player, read, walk: null, nextWalk, mayReadOlder: true }
  }

  function passShare(): void {
    share = agedShare(share, rules, nowMs(), isLate)
  }

  /** Charges a reading of refreshes: what is expected before it, and what it really sent after. */
  function counted(expected: number, read: () => void): number {
    passShare()
    share = charge(share, rules, expected)
    const begun = { requests: counts.requests, time }
    read()
    const requests = counts.requests - begun.requests
    passShare()
    share = charge(share, rules, requests - expected)
    counts.refreshes += requests
    for (let index = 0; index < requests; index++) sent.push(begun.time + index * gap)
    highestLevel = Math.max(highestLevel, share.level)
    return requests
  }

  function readNewest(list: PlayedList): void {
    const { player, mirror } = list
    const [startedAt, startedMs] = [time, nowMs()]
    const { lastPage } = player.state()
    if (isWalkedWhole({ lastPage })) {
      counted(lastPage + 1, () => {
        do walkOn(list)
        while (list.walk)
      })
      return
    }
    const isVictim = random.chance(killed)
    let isFinished = false
    counted(2, () => {
      isFinished = player.refresh(startedMs, priceOf(share), () => isVictim && random.chance(0.3))
    })
    if (!isFinished) return
    counts.finished++
    // What a full walk missed is its own coverage's to say.
    if (player.state().freshAsOf === startedMs && mirror.missingSince(startedAt) > 0) counts.untrue++
    if (list.setting.changes) counts.changes += counted(1, () => player.beginChanges(nowMs()))
  }

  /** Reads an older page, if one is owed and the share has room for it. */
  function readOlder(price: number): boolean {
    const now = nowMs()
    const ready = lists.filter(({ walk, mayReadOlder }) => !walk || mayReadOlder)
    const byAge = ready.toSorted((a, b) => bandsAt(a) - bandsAt(b))
    const owing = byAge.map((list) => {
      const since = list.player.owedSince()
      return { list, since, dueAt: since ?? list.player.owedAt(price, rules.chunk) }
    })
    isLate ||= owing.some(({ dueAt }) => now - dueAt > LATE_MS)
    const found = owing.find(({ list, since, dueAt }) => {
      const goesOn = since !== null && (list === visited || list.walk !== null)
      return mayBegin(share, rules, goesOn ? 'older' : 'visit') && dueAt <= now
    })
    if (!found) return false
    const { list } = found
    const kind = list.player.state().changes?.ask ? 'changes' : 'older'
    counts[kind] += counted(1, () => {
      visited = list.player.readOlder(price, now) ? list : null
    })
    list.mayReadOlder = false
    return true
  }

  /** Reads what is due. False: nothing is. */
  function refreshAny(): boolean {
    if (policy.refreshEvery === null) return false
    passShare()
    const now = nowMs()
    const price = priceOf(share)
    const waits = lists.map((list) => {
      const dueAt = list.player.newestDueAt(price, now)
      return { list, dueAt, times: (now - dueAt) / list.player.newestInterval(price) }
    })
    isLate = waits.some(({ dueAt }) => now - dueAt > LATE_MS)
    const [first] = waits.toSorted((a, b) => b.times - a.times)
    if (!first || first.times < 0 || !mayBegin(share, rules, 'newest'))
      return policy.readsOlder && readOlder(price)
    visited = null
    readNewest(first.list)
    return true
  }

  function walkOn(list: PlayedList): void {
    const { player } = list
    const walk = list.walk ?? {
      startedAt: time,
      page: 1,
      answers: 0,
      total: null,
      isSteady: true,
      written: { added: 0, changed: 0 },
    }
    list.walk = walk
    const answer = list.read(walk.page)
    walk.answers++
    walk.total ??= answer.total
    walk.isSteady &&= walk.total === answer.total
    walk.written.added += answer.added
    walk.written.changed += answer.changed
    player.onWalkedPage(answer, walk.page, priceOf(share))
    if (!walk.isSteady && walk.answers % LOOK_EVERY === 0 && walk.page > LOOK_BACK)
      list.read(walk.page - LOOK_BACK)
    list.mayReadOlder = true
    if (walk.page++ < answer.lastPage) return
    const { isSteady, written } = walk
    const totals = { first: walk.total, last: answer.total }
    const startedAt = Math.round(walk.startedAt * MINUTE_MS)
    player.onWalk({ startedAt, endedAt: at, lastPage: answer.lastPage, totals, isSteady, written })
    list.nextWalk = Math.max(time, walk.startedAt + policy.walkEvery)
    list.walk = null
  }

  let turn = 0
  /** A page of one of the walks that are due, in turn. */
  function walkAny(): boolean {
    for (let tries = 0; tries < lists.length; tries++) {
      const list = lists[turn++ % lists.length]
      if (!list) continue
      if (!list.walk && time < list.nextWalk && !isAlarmed(list.player.state())) continue
      walkOn(list)
      return true
    }
    return false
  }

  let isMeasured = false
  while (time < minutes) {
    // As often as the program looks.
    if (!refreshAny() && !walkAny()) time += 5 / 60
    if (isMeasured || time < before * DAY) continue
    isMeasured = true
    for (const { world, mirror } of lists) {
      world.passTo(time)
      mirror.measureFrom(time)
    }
    Object.assign(counts, { requests: 0, refreshes: 0, older: 0, changes: 0 })
    highestLevel = 0
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
    refreshesPerDay: counts.refreshes / days,
    olderPerDay: counts.older / days,
    changesPerDay: counts.changes / days,
    refreshes: counts.finished,
    untrue: counts.untrue,
    fullestHour: mostInAnHour(sent) / ((HOUR * limit * policy.share) / 100),
    highestLevel,
    lists: measured,
  }
}

function bandsAt({ player }: PlayedList): number {
  return player.state().rates?.bandsAt ?? 0
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
