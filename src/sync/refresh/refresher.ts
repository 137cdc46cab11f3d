import { JobError, type KnownError } from '../../errors.ts'
import type { PageTimes } from '../page-writer.ts'
import { createTurn } from '../refresh-turns.ts'
import { runError, runOutcome } from '../run.ts'
import type { Lease, Run, RunRecord, RunTraffic, Store } from '../store.ts'
import type { Observe, PageSource, Urgency } from '../types.ts'
import { countTraffic, noTraffic } from '../walk.ts'
import { addCredit, payForRetries, takeOlderPage } from './band-credit.ts'
import { type Band, pageAt, planBands } from './bands.ts'
import {
  dueAt,
  isAhead,
  isWalkedWhole,
  olderPagesBudget,
  type RefreshBudget,
  type RefreshPolicy,
  refreshInterval,
} from './due.ts'
import { youngEnds } from './ends.ts'
import { seekFromFirst } from './last-page.ts'
import { type RefreshedPage, type RefreshPageEvent, type RefreshTools, refreshPage } from './read-page.ts'
import { advanceRefresh, beginRefresh, finishRefresh, pagesRead, type Refresh } from './refresh.ts'
import { rulesOf, type SavedRefresh, savedRefresh, scopeText } from './saved.ts'
import { afterOlderPage, notAfter, type RefreshState, stateOf, withCost } from './state.ts'

export interface RefresherOptions {
  store: Store
  lease: Lease
  source: PageSource
  times: PageTimes
  observe: Observe<RefreshEvent>
  /** Null: the job is not refreshed by itself. */
  policy: RefreshPolicy | null
  now: () => number
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

export type RefreshEvent = RefreshPageEvent | { kind: 'refresh'; result: RefreshResult }

/** How a refresh ended. */
export interface RefreshResult {
  /** Its line of `sync_runs`, and its duration in milliseconds. */
  runId: number
  tookMs: number
  run: RunRecord & RunTraffic
  saved: SavedRefresh
  /** Whether it was asked for, instead of due. */
  isAsked: boolean
  error: KnownError | null
}

/** The refreshes of a job while this process has it. */
export interface Refresher {
  /** What the next refresh starts from; null if none is possible yet. */
  state(): RefreshState | null
  /** Withdraws what was claimed by a clock that ran ahead and was set back. */
  heedClock(): Promise<void>
  /** Whether a walk has to give way between two of its pages. */
  isDue(): boolean
  /** Refreshes the job if that is due, or reads one older page. Only a store that cannot be used makes it throw. */
  runBetweenPages(walk: Run): Promise<void>
  /** Refreshes the job now; `older`: also reads the older pages that are due, until the next refresh is. */
  refresh(how: { older: boolean }): Promise<RefreshResult>
}

/** A refresh whose ends are read, and the state after it. */
interface ReadEnds {
  refresh: Refresh
  after: RefreshState
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, lease, source, policy, observe, now, signal } = options
  const rules = rulesOf(lease.job)
  let state = stateOf(lease.refresh, scopeText(lease.job))
  let plan: Band[] = []
  /** Of the last refresh: older pages that a walk gives way to count there. */
  let last: Run | null = null
  const turn = createTurn((cost) => policy?.takeTurn(cost) ?? null, now)

  const budget = ({ every, share, load }: RefreshPolicy, cost: number | null): RefreshBudget => ({
    every,
    share,
    limit: source.limit(),
    // A walk may take hours, and what others know of this list is as old.
    load: load(cost),
  })
  const nextAt = (from: RefreshState): number =>
    policy ? dueAt(from, refreshInterval(budget(policy, from.cost)), now()) : Number.POSITIVE_INFINITY
  const toolsOf = (run: Run): RefreshTools => ({
    ...options,
    run,
    observe(event) {
      countTraffic(run.traffic, event)
      observe(event)
    },
  })

  async function readEnds(from: RefreshState, tools: RefreshTools): Promise<ReadEnds> {
    let refresh = beginRefresh(from, rules, now())
    let met = new Map<string, number>()
    let written = { at: from.settledAt, found: 0 }
    while (refresh.reading) {
      const { ask, end, answers } = refresh.reading
      if (ask === null) throw new Error('a reading without a page to ask has not ended')
      let answer: RefreshedPage
      try {
        answer = await refreshPage(tools, ask, 'refresh')
      } catch (error) {
        const reading = error instanceof JobError ? seekFromFirst(refresh.reading, error) : null
        if (!reading) throw error
        refresh = { ...refresh, reading }
        continue
      }
      const { page, at, items, rowsAdded } = answer
      written = { at, found: rowsAdded - from.rowsAdded }
      const { total, next, lastPage } = page
      const rows = items.map(({ id, ...row }) => ({ ...row, metIn: met.get(id) ?? null }))
      for (const { id } of items) met.set(id, answers + 1)
      refresh = advanceRefresh(from, rules, refresh, { page: ask, total, next, lastPage, rows, ...written })
      if (refresh.reading?.end !== end) met = new Map()
    }
    const after = finishRefresh(from, rules, refresh, written.at, written.found)
    return { refresh, after: withCost(after, tools.run.traffic.requests) }
  }

  /** Gives the older pages what they may ask for until the next refresh. */
  function withCredit({ refresh, after }: ReadEnds, elapsed: number): RefreshState {
    if (!policy) return after
    const shared = budget(policy, after.cost)
    const interval = refreshInterval(shared)
    const { walkEvery } = policy
    const [newest = null] = youngEnds(after.places, rules.newest)
    plan = planBands({
      pages: after.lastPage,
      read: pagesRead(refresh, newest),
      interval,
      budget: olderPagesBudget(shared),
      walkEvery: Math.max(walkEvery, after.walkTook),
      hasNewestEnd: newest !== null,
    })
    return { ...after, interval, bands: addCredit(after.bands, plan, elapsed, interval) }
  }

  /** Reads an older page, if one may be asked for. */
  async function readOlder(from: RefreshState, tools: RefreshTools, urgency: Urgency): Promise<boolean> {
    const taken = takeOlderPage(from.bands, plan)
    if (!taken) return false
    const { traffic } = tools.run
    const before = traffic.requests
    const paid = () => payForRetries(taken, traffic.requests - before)
    const newest = youngEnds(from.places, rules.newest)[0] ?? null
    const number = Math.max(1, pageAt(taken.depth, newest, from.lastPage))
    const save = (added: number) => {
      state = afterOlderPage(from, paid(), added)
      return savedRefresh(state, rules)
    }
    try {
      await refreshPage(tools, number, urgency, save)
    } catch (error) {
      // Paid for, too, or a page that cannot be read would be asked for again and again.
      state = { ...from, bands: paid() }
      throw error
    }
    return true
  }

  async function readAll(from: RefreshState, tools: RefreshTools, older: boolean): Promise<void> {
    const ends = await readEnds(from, tools)
    const elapsed = ends.after.startedAt - from.startedAt
    state = notAfter(older ? withCredit(ends, elapsed) : ends.after, now())
    await store.saveRefresh(lease, savedRefresh(state, rules))
  }

  async function refreshNow({ older }: { older: boolean }, within: Run | null): Promise<RefreshResult> {
    if (!state) throw new Error('a list is refreshed only after its first complete full walk')
    const from: RefreshState = { ...notAfter(state, now()), triedAt: now() }
    state = from
    const id = await store.beginRefresh(lease, savedRefresh(from, rules), within)
    const run = { id, traffic: noTraffic() }
    last = run
    const tools = toolsOf(run)
    let error: KnownError | null = null
    try {
      await readAll(from, tools, older)
      // Between two pages of a walk, the walk says when the next one may be read.
      let isMore = older && !within
      while (isMore) isMore = now() < nextAt(state) && (await readOlder(state, tools, 'older'))
    } catch (cause) {
      error = runError(cause, signal)
      // The share counts what was sent, and failures may be tried many times.
      if (state === from) state = withCost(from, run.traffic.requests)
      await store.saveRefresh(lease, savedRefresh(state, rules))
    }
    const record = await store.finishRun(lease, run, runOutcome(error, null, run.traffic))
    const result = {
      runId: id,
      tookMs: Math.max(0, now() - from.triedAt),
      run: { ...record, ...run.traffic },
      saved: savedRefresh(state, rules),
      isAsked: !older,
      error,
    }
    observe({ kind: 'refresh', result })
    return result
  }

  const isClaimAhead = () => state !== null && isAhead(state, now())

  async function heedClock(): Promise<void> {
    if (!state || !isClaimAhead()) return
    state = notAfter(state, now())
    await store.saveRefresh(lease, savedRefresh(state, rules))
  }

  const mayRefresh = () => policy !== null && state !== null && !isWalkedWhole(state)
  // Never sooner than `every`, so between most pages nobody has to work out what the budget allows.
  const isRefreshDue = () =>
    policy !== null &&
    state !== null &&
    dueAt(state, policy.every, now()) <= now() &&
    turn.mayAsk() &&
    nextAt(state) <= now()

  return {
    state: () => state && notAfter(state, now()),
    heedClock,
    isDue: () =>
      isClaimAhead() ||
      (mayRefresh() &&
        (isRefreshDue() || (last !== null && takeOlderPage(state?.bands ?? [], plan) !== null))),
    async runBetweenPages(walk) {
      await heedClock()
      if (!state || !mayRefresh()) return
      if (isRefreshDue() && (await turn.take(state.cost))) await refreshNow({ older: true }, walk)
      else if (last) await readOlder(state, toolsOf(last), 'walk').catch(ignoreJobError)
    },
    refresh: (how) => refreshNow(how, null),
  }
}

/** An older page that cannot be read is no reason to end a walk; a walk meets all other errors itself. */
function ignoreJobError(error: unknown): void {
  if (!(error instanceof JobError)) throw error
}
