import { JobError, type KnownError } from '../../errors.ts'
import type { PageTimes } from '../page-writer.ts'
import { runError, runOutcome } from '../run.ts'
import type { Lease, Run, RunRecord, RunTraffic, Store } from '../store.ts'
import type { Observe, Page, PageSource, Urgency } from '../types.ts'
import { countTraffic, noTraffic, type PageResult } from '../walk.ts'
import {
  afterWalked,
  expectedRequests,
  newestDueAt,
  newestInterval,
  owedAt,
  owedSince,
  type RefreshPace,
  takeOwed,
  withOwed,
} from './due.ts'
import { newestEnd } from './ends.ts'
import { seekFromFirst } from './last-page.ts'
import { isWalkedWhole, mayBegin, priceOf, type Reading, type Share, type ShareRules } from './price.ts'
import { afterNewestEnd } from './rates.ts'
import { type RefreshedPage, type RefreshPageEvent, type RefreshTools, refreshPage } from './read-page.ts'
import { advanceRefresh, beginRefresh, finishRefresh, pagesRead, type Refresh } from './refresh.ts'
import { rulesOf, type SavedRefresh, savedRefresh, scopeText } from './saved.ts'
import type { ShareUse } from './share-use.ts'
import { isAhead, knownRates, notAfter, type RefreshState, stateOf } from './state.ts'

/** How often a job is refreshed, and what that may cost. */
export interface RefreshPolicy extends RefreshPace {
  /** What its budget allows refreshes, as far as that is known by now. */
  rules(): ShareRules
  share: ShareUse
}

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
  /** Learns from a page of a full walk. */
  noteWalked(page: Page, written: PageResult): void
  /**
   * Refreshes the job: its newest end, now if it `isAsked`; else if that is due, and the older pages that are owed, as far as the share
   * has room. Null: there was nothing to do.
   */
  refresh(how: { isAsked: boolean }): Promise<RefreshResult | null>
  /** Charges the walk of a short list in place of a refresh. Null: none is due, or the share has no room. */
  chargeWalk(how: { isAsked: boolean }): Promise<number | null>
  /** Charges what was sent beyond that. */
  settle(requests: number): Promise<void>
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, lease, policy, observe, now, signal } = options
  const rules = rulesOf(lease.job)
  let state = stateOf(lease.refresh, scopeText(lease.job))
  /** Of the last refresh: older pages that a walk gives way to count there. */
  let last: Run | null = null

  const toolsOf = (run: Run): RefreshTools => ({
    ...options,
    run,
    observe(event) {
      countTraffic(run.traffic, event)
      observe(event)
    },
  })

  async function readEnds(from: RefreshState, tools: RefreshTools): Promise<RefreshState> {
    let refresh: Refresh = beginRefresh(from, rules, now())
    let met = new Map<string, number>()
    let seen = { at: from.settledAt, found: 0 }
    const written = { added: 0, changed: 0 }
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
      written.added += answer.written.added
      written.changed += answer.written.changed
      seen = { at, found: rowsAdded - from.rowsAdded }
      const { total, next, lastPage } = page
      const rows = items.map(({ id, ...row }) => ({ ...row, metIn: met.get(id) ?? null }))
      for (const { id } of items) met.set(id, answers + 1)
      refresh = advanceRefresh(from, rules, refresh, { page: ask, total, next, lastPage, rows, ...seen })
      if (refresh.reading?.end !== end) met = new Map()
    }
    const after = finishRefresh(from, rules, refresh, seen.at, seen.found)
    const rates = knownRates(after, rules.newest, now())
    return {
      ...after,
      newestRead: pagesRead(refresh, newestEnd(after.places, rules.newest)),
      rates: afterNewestEnd(rates, written, refresh.startedAt - from.startedAt),
    }
  }

  /** Charges what such a reading will take, if it is due and the share has room. */
  async function take(
    wanted: (share: Share, allowed: ShareRules, from: RefreshState) => number,
  ): Promise<number> {
    const allowed = policy?.rules()
    if (!policy || !allowed || !state) return 0
    const from = state
    return policy.share.take(allowed, (share) => wanted(share, allowed, from))
  }

  async function settle(requests: number): Promise<void> {
    if (policy && requests !== 0) await policy.share.settle(policy.rules(), requests)
  }

  function newestRequests(share: Share, allowed: ShareRules, from: RefreshState): number {
    const isDue = policy !== null && newestDueAt(from, policy, priceOf(share), now()) <= now()
    return isDue && mayBegin(share, allowed, 'newest') ? expectedRequests(from, rules.newest, now()) : 0
  }

  /** 1 if an older page may be read, else 0. Such pages are owed by then. `begin`: what the share has to have room for. */
  function olderRequests(begin: Reading): Parameters<typeof take>[0] {
    return (share, allowed, from) => {
      if (!policy || isWalkedWhole(from)) return 0
      const isOwed = owedSince(from, policy) !== null
      if (!mayBegin(share, allowed, isOwed ? begin : 'visit')) return 0
      return isOwed || owedAt(from, policy, priceOf(share), allowed.chunk) <= now() ? 1 : 0
    }
  }

  /** Reads an older page, if one is owed and may be asked for. */
  async function readOlder(begin: Reading, run: () => Promise<Run>, urgency: Urgency): Promise<boolean> {
    if (!policy || (await take(olderRequests(begin))) === 0 || !state) return false
    const price = priceOf(policy.share.known(policy.rules()))
    const owing = owedSince(state, policy) === null ? withOwed(state, policy, price, now()) : state
    const owed = takeOwed(owing, policy, price, now())
    state = owed.state
    const { page } = owed
    // All of them were just shown.
    if (!page) {
      await settle(-1)
      await store.saveRefresh(lease, savedRefresh(state, rules))
      return false
    }
    const tools = toolsOf(await run())
    const before = tools.run.traffic.requests
    try {
      await refreshPage(tools, page.number, urgency, (written) => {
        state = page.after(written)
        return savedRefresh(state, rules)
      })
    } catch (error) {
      // A page that cannot be read would be asked for again and again.
      state = page.after(null)
      throw error
    } finally {
      await settle(tools.run.traffic.requests - before - 1)
    }
    return true
  }

  async function readNewest(from: RefreshState, tools: RefreshTools): Promise<void> {
    const after = await readEnds(from, tools)
    const price = policy && priceOf(policy.share.known(policy.rules()))
    const interval = policy && price ? newestInterval(after, policy, price) : after.interval
    state = notAfter({ ...after, interval }, now())
    await store.saveRefresh(lease, savedRefresh(state, rules))
  }

  /** `charged`: for the newest end; 0: it is not read. */
  async function refreshNow(
    isAsked: boolean,
    charged: number,
    within: Run | null,
  ): Promise<RefreshResult | null> {
    if (!state) throw new Error('a list is refreshed only after its first complete full walk')
    const begunAt = now()
    const before = notAfter(state, begunAt)
    const from: RefreshState = charged > 0 ? { ...before, triedAt: begunAt } : before
    state = from
    let run: Run | null = null
    const begin = async () => {
      run ??= {
        id: await store.beginRefresh(lease, savedRefresh(state ?? from, rules), within),
        traffic: noTraffic(),
      }
      last = run
      return run
    }
    let error: KnownError | null = null
    try {
      if (charged > 0) {
        const tools = toolsOf(await begin())
        try {
          await readNewest(from, tools)
        } finally {
          await settle(tools.run.traffic.requests - charged)
        }
      }
      // Between two pages of a walk, the walk says when the next one may be read.
      let isMore = !isAsked && !within
      for (let begins: Reading = 'visit'; isMore; begins = 'older')
        isMore = await readOlder(begins, begin, 'older')
    } catch (cause) {
      if (!run) throw cause
      error = runError(cause, signal)
      await store.saveRefresh(lease, savedRefresh(state, rules))
    }
    if (!run) return null
    return finish(run, { isAsked, begunAt, error })
  }

  async function finish(
    run: Run,
    { isAsked, begunAt, error }: Pick<RefreshResult, 'isAsked' | 'error'> & { begunAt: number },
  ): Promise<RefreshResult> {
    const record = await store.finishRun(lease, run, runOutcome(error, null, run.traffic))
    const result = {
      runId: run.id,
      tookMs: Math.max(0, now() - begunAt),
      run: { ...record, ...run.traffic },
      saved: savedRefresh(state as RefreshState, rules),
      isAsked,
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

  /** Whether it may be so, as far as this process knows: charging it tells. */
  function isWanted(wanted: Parameters<typeof take>[0]): boolean {
    if (!policy || !state || isWalkedWhole(state)) return false
    const allowed = policy.rules()
    return wanted(policy.share.known(allowed), allowed, state) > 0
  }

  return {
    state: () => state && notAfter(state, now()),
    heedClock,
    isDue: () =>
      isClaimAhead() || isWanted(newestRequests) || (last !== null && isWanted(olderRequests('older'))),
    async runBetweenPages(walk) {
      await heedClock()
      const charged = isWanted(newestRequests) ? await take(newestRequests) : 0
      if (charged > 0) {
        await refreshNow(false, charged, walk)
        return
      }
      const run = last
      if (run && isWanted(olderRequests('older')))
        await readOlder('older', async () => run, 'walk').catch(ignoreJobError)
    },
    noteWalked({ number }, { added, changed }) {
      if (!state || !policy) return
      const price = priceOf(policy.share.known(policy.rules()))
      state = afterWalked(state, policy, price, { number, found: added + changed }, now())
    },
    async refresh({ isAsked }) {
      const charged = await take(
        isAsked ? (_share, _allowed, from) => expectedRequests(from, rules.newest, now()) : newestRequests,
      )
      return refreshNow(isAsked, isAsked && charged === 0 ? 1 : charged, null)
    },
    async chargeWalk({ isAsked }) {
      if (!policy || !state) return 0
      const charged = await take(
        isAsked ? (_share, _allowed, from) => expectedRequests(from, rules.newest, now()) : newestRequests,
      )
      return charged === 0 && !isAsked ? null : charged
    },
    settle,
  }
}

/** An older page that cannot be read is no reason to end a walk; a walk meets all other errors itself. */
function ignoreJobError(error: unknown): void {
  if (!(error instanceof JobError)) throw error
}
