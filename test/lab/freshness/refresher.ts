import type { RefreshRow, RefreshRules } from '../../../src/sync/refresh/answer.ts'
import { addCredit, type BandState, takeOlderPage } from '../../../src/sync/refresh/band-credit.ts'
import { type Band, pageAt, planBands } from '../../../src/sync/refresh/bands.ts'
import {
  dueAt,
  loadOf,
  olderPagesBudget,
  type RefreshBudget,
  refreshInterval,
} from '../../../src/sync/refresh/due.ts'
import { youngEnds } from '../../../src/sync/refresh/ends.ts'
import {
  advanceRefresh,
  beginRefresh,
  finishRefresh,
  pagesRead,
  type Refresh,
} from '../../../src/sync/refresh/refresh.ts'
import {
  afterFullWalk,
  afterOlderPage,
  type CompleteWalk,
  type RefreshState,
  withCost,
} from '../../../src/sync/refresh/state.ts'
import type { Policy } from './policies.ts'

/** A page as it is read and written: one request. */
export type ReadPage = (page: number) => WrittenPage

export interface WrittenPage {
  ids: readonly number[]
  seen: readonly RefreshRow['seen'][]
  added: number
  total: number
  lastPage: number
  /** Epoch milliseconds. */
  at: number
}

/** The refreshes of one job, with nothing but the program's decisions. Times are epoch milliseconds. */
export interface Refresher {
  isDue(now: number): boolean
  /** Reads the newest end. False where its process is killed in the middle; nothing but the rows is kept then. */
  refresh(now: number, isKilled: () => boolean): boolean
  /** Reads an older page, if one may be asked for. */
  readOlder(): boolean
  /** A full walk is complete. */
  onWalk(walk: Omit<CompleteWalk, 'scope' | 'rowsAdded'>): void
  /** Counts rows that were written for the first time. */
  onAdded(count: number, at: number): void
  /** Items that came before then are in the mirror, as far as it claims; null where it claims nothing. */
  freshAsOf(): number | null
  /** When an interrupted or finished one has to be done next. */
  nextAt(): number
}

interface ReadEnds {
  refresh: Refresh
  after: RefreshState
}

const RULES: RefreshRules = { total: 'check', newest: 'auto' }
const MINUTE = 60_000

export function createRefresher(policy: Policy, limit: number, read: ReadPage): Refresher {
  let state: RefreshState | null = null
  let added: { at: number; count: number }[] = []
  let plan: Band[] = []

  const budget = (cost: number | null): RefreshBudget => ({
    every: (policy.refreshEvery ?? 0) * MINUTE,
    share: policy.share,
    limit,
    load: loadOf([cost]),
  })
  const interval = (cost = state?.cost ?? null) => refreshInterval(budget(cost))
  const found = (since: number) => added.reduce((sum, { at, count }) => sum + (at > since ? count : 0), 0)

  function readEnds(before: RefreshState, now: number, isKilled: () => boolean): ReadEnds | null {
    let refresh: Refresh = beginRefresh(before, RULES, now)
    let met = new Map<number, number>()
    let at = now
    let requests = 0
    while (refresh.reading) {
      const { ask, end, answers } = refresh.reading
      if (ask === null || isKilled()) return null
      const page = read(ask)
      requests++
      const rows = page.ids.map((id, index) => ({
        seen: page.seen[index] ?? null,
        metIn: met.get(id) ?? null,
      }))
      const { total, lastPage } = page
      at = page.at
      const next = ask < lastPage ? ask + 1 : null
      const answer = { page: ask, at, total, next, lastPage, rows, found: found(before.settledAt) }
      for (const id of page.ids) met.set(id, answers + 1)
      refresh = advanceRefresh(before, RULES, refresh, answer)
      if (refresh.reading?.end !== end) met = new Map()
    }
    const after = finishRefresh(before, RULES, refresh, at, found(before.settledAt))
    return { refresh, after: withCost(after, requests) }
  }

  function creditBands({ refresh, after }: ReadEnds, elapsed: number): BandState[] {
    if (!policy.readsOlder) return []
    const [newest = null] = youngEnds(after.places, RULES.newest)
    plan = planBands({
      pages: after.lastPage,
      read: pagesRead(refresh, newest),
      interval: interval(after.cost),
      budget: olderPagesBudget(budget(after.cost)),
      walkEvery: policy.walkEvery * MINUTE,
      hasNewestEnd: newest !== null,
    })
    return addCredit(after.bands, plan, elapsed, interval(after.cost))
  }

  return {
    isDue: (now) => policy.refreshEvery !== null && state !== null && dueAt(state, interval(), now) <= now,
    nextAt: () =>
      state && policy.refreshEvery !== null
        ? dueAt(state, interval(), state.startedAt)
        : Number.POSITIVE_INFINITY,
    freshAsOf: () => state?.freshAsOf ?? null,
    onAdded: (count, at) => {
      if (count > 0) added.push({ at, count })
    },
    onWalk(walk) {
      // `found` counts what is new by its time.
      state = afterFullWalk(state, { scope: '', rowsAdded: { first: 0, last: 0 }, ...walk })
    },
    refresh(now, isKilled) {
      if (!state) return true
      const ends = readEnds(state, now, isKilled)
      if (!ends) return false
      const bands = creditBands(ends, now - state.startedAt)
      state = { ...ends.after, bands }
      added = added.filter(({ at }) => at > ends.after.settledAt)
      return true
    },
    readOlder() {
      const taken = state && takeOlderPage(state.bands, plan)
      if (!state || !taken) return false
      const newest = youngEnds(state.places, RULES.newest)[0] ?? null
      const { added: addedThere } = read(pageAt(taken.depth, newest, state.lastPage))
      state = afterOlderPage(state, taken.next, addedThere)
      return true
    },
  }
}
