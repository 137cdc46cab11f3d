import { JobError, type KnownError } from '../../errors.ts'
import type { PageTimes } from '../page-writer.ts'
import { countTraffic, noTraffic, runError, runOutcome } from '../run.ts'
import type { Lease, Run, RunRecord, RunTraffic, Store } from '../store.ts'
import type { Observe, Page, PageSource, Urgency } from '../types.ts'
import type { PageResult } from '../walk.ts'
import {
  afterWalked,
  expectedRequests,
  newestInterval,
  newestWanted,
  olderWanted,
  type RefreshPolicy,
  takeOwed,
} from './due.ts'
import { isWalkedWhole, priceOf, type Share } from './price.ts'
import { readEnds } from './read-ends.ts'
import { type RefreshPageEvent, type RefreshTools, refreshPage, type Written } from './read-page.ts'
import {
  isAhead,
  notAfter,
  type RefreshState,
  rulesOf,
  type SavedRefresh,
  savedRefresh,
  scopeText,
  stateOf,
} from './state.ts'

/** How many requests a job wants to send by now. */
type Wanted = (share: Share, from: RefreshState, policy: RefreshPolicy) => number

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
export type Refresher = ReturnType<typeof createRefresher>

export function createRefresher(options: RefresherOptions) {
  const { store, lease, policy, observe, now, signal } = options
  const rules = rulesOf(lease.job)
  let state = stateOf(lease.refresh, scopeText(lease.job))
  /** The run of the last refresh: older pages that are read between two pages of a walk count there. */
  let last: Run | null = null

  const toolsOf = (run: Run): RefreshTools => ({
    ...options,
    run,
    observe(event) {
      countTraffic(run.traffic, event)
      observe(event)
    },
  })

  async function readNewest(from: RefreshState, tools: RefreshTools): Promise<RefreshState> {
    const startedAt = now()
    const ask = async (number: number) => {
      try {
        const answer = await refreshPage(tools, number, 'refresh')
        const { total, next, lastPage } = answer.page
        return { ...answer, total, next, lastPage, found: answer.rowsAdded - from.rowsAdded }
      } catch (error) {
        if (error instanceof JobError) return error
        throw error
      }
    }
    const reading = readEnds<string>(from, rules, startedAt)
    let step = reading.next()
    while (!step.done) step = reading.next(await ask(step.value))
    return step.value.state
  }

  const priceNow = () => (policy ? priceOf(policy.share.known()) : 0)

  const older =
    (goesOn: boolean): Wanted =>
    (...asked) =>
      olderWanted(...asked, now(), goesOn)
  const newest: Wanted = (...asked) => newestWanted(...asked, now())

  /** Charges what is wanted, and returns it. */
  async function take(wanted: Wanted): Promise<number> {
    const from = state
    return policy && from ? policy.share.take((share) => wanted(share, from, policy)) : 0
  }

  /** Whether any request is wanted now, as far as this process knows what others have charged. */
  const isWanted = (wanted: Wanted) =>
    policy !== null &&
    state !== null &&
    !isWalkedWhole(state) &&
    wanted(policy.share.known(), state, policy) > 0

  /** Corrects a charge: `requests` were sent beyond it, or, below 0, were charged and not sent. */
  async function correctCharge(requests: number): Promise<void> {
    if (requests !== 0) await policy?.share.take(() => requests)
  }

  /** Reads a page of what changed, or an older page, if one is owed and the share has room. Returns whether it read one. */
  async function readOlder(goesOn: boolean, begin: () => Promise<Run>, urgency: Urgency): Promise<boolean> {
    if ((await take(older(goesOn))) === 0 || !policy || !state) return false
    const owed = takeOwed(state, policy, priceNow(), policy.share.rules().chunk, now())
    state = owed.state
    const { page } = owed
    if (!page) {
      // The newest end has just shown all of them.
      await correctCharge(-1)
      await store.saveRefresh(lease, savedRefresh(state, rules))
      return false
    }
    const save = (written: Written) => {
      state = page.after(written)
      return savedRefresh(state, rules)
    }
    try {
      await paying(1, begin, (tools) => refreshPage(tools, page.number, urgency, save))
    } catch (error) {
      // A page that cannot be read would be asked for again and again.
      state = page.after(null)
      throw error
    }
    return true
  }

  /** Runs `read`, for which `charged` requests are charged already, and charges the others. */
  async function paying(
    charged: number,
    begin: () => Promise<Run>,
    read: (tools: RefreshTools) => Promise<unknown>,
  ): Promise<void> {
    let sent = 0
    try {
      const tools = toolsOf(await begin())
      const before = tools.run.traffic.requests
      await read(tools).finally(() => {
        sent = tools.run.traffic.requests - before
      })
    } finally {
      await correctCharge(sent - charged)
    }
  }

  /** `charged`: for the newest end; 0: it is not read. */
  async function refreshNow(how: { isAsked: boolean }, charged: number, within: Run | null) {
    if (!state) throw new Error('a list is refreshed only after its first complete full walk')
    const begunAt = now()
    const before = notAfter(state, begunAt)
    const from: RefreshState = charged > 0 ? { ...before, triedAt: begunAt } : before
    state = from
    let run: Run | null = null
    const begin = async () => {
      const id = run?.id ?? (await store.beginRefresh(lease, savedRefresh(state ?? from, rules), within))
      run ??= { id, traffic: noTraffic() }
      last = run
      return run
    }
    let error: KnownError | null = null
    try {
      if (charged > 0) {
        await paying(charged, begin, async (tools) => {
          const after = await readNewest(from, tools)
          const interval = policy ? newestInterval(after, policy, priceNow()) : null
          const share = policy ? { share: policy.share.rules().perMinute } : {}
          state = notAfter({ ...after, interval, ...share }, now())
          await store.saveRefresh(lease, savedRefresh(state, rules))
        })
      }
      // Within a walk, the walk decides when the next older page may be read.
      let isMore = !how.isAsked && !within
      for (let goesOn = false; isMore; goesOn = true) isMore = await readOlder(goesOn, begin, 'older')
    } catch (cause) {
      if (!run) throw cause
      error = runError(cause, signal)
      await store.saveRefresh(lease, savedRefresh(state, rules))
    }
    if (!run) return null
    const { id, traffic } = run as Run
    const record = await store.finishRun(run, runOutcome(error, null, traffic))
    const result: RefreshResult = {
      runId: id,
      tookMs: Math.max(0, now() - begunAt),
      run: { ...record, ...traffic },
      saved: savedRefresh(state, rules),
      ...how,
      error,
    }
    observe({ kind: 'refresh', result })
    return result
  }

  const isClaimAhead = () => state !== null && isAhead(state, now())

  /** Withdraws what was claimed by a clock that ran ahead and was set back. */
  async function heedClock(): Promise<void> {
    if (!state || !isClaimAhead()) return
    state = notAfter(state, now())
    await store.saveRefresh(lease, savedRefresh(state, rules))
  }

  /** Charges a reading of the newest end, and returns the requests. */
  const takeNewest = (isAsked: boolean) =>
    take(isAsked ? (_share, from) => expectedRequests(from, rules.newest, now()) : newest)

  return {
    /** What the next refresh starts from; null if none is possible yet. */
    state: () => state && notAfter(state, now()),
    heedClock,
    /** Whether a walk has to give way between two of its pages. */
    isDue: () => isClaimAhead() || isWanted(newest) || (last !== null && isWanted(older(true))),
    /**
     * Refreshes the newest end if that is due, else reads one older page if one is owed. A failed refresh is reported by its event, and an
     * older page that fails with a JobError is skipped. Any other error of an older page, and any of the store, ends the walk.
     */
    async runBetweenPages(walk: Run) {
      await heedClock()
      const charged = isWanted(newest) ? await takeNewest(false) : 0
      const run = last
      if (charged > 0) await refreshNow({ isAsked: false }, charged, walk)
      else if (run && isWanted(older(true)))
        await readOlder(true, async () => run, 'walk').catch(ignoreJobError)
    },
    /** Learns from a page of a full walk. */
    noteWalked({ number }: Page, written: PageResult) {
      if (!state || !policy) return
      const found = written.added + written.changed
      state = afterWalked(state, policy, priceNow(), { number, found }, now())
    },
    /**
     * Refreshes the job. If it `isAsked`: its newest end, now. Else its newest end if that is due, and the older pages that are owed, as far as
     * the share has room. Null: there was nothing to do.
     */
    async refresh(how: { isAsked: boolean }): Promise<RefreshResult | null> {
      const charged = await takeNewest(how.isAsked)
      // Without a policy nothing is charged.
      return refreshNow(how, how.isAsked ? Math.max(1, charged) : charged, null)
    },
    /** Charges the walk of a short list in place of a refresh. Null: none is due, or the share has no room. */
    async chargeWalk({ isAsked }: { isAsked: boolean }) {
      const charged = await takeNewest(isAsked)
      return charged === 0 && !isAsked && policy && state ? null : charged
    },
    correctCharge,
  }
}

/** An older page that cannot be read is no reason to end a walk; a walk meets all other errors itself. */
function ignoreJobError(error: unknown): void {
  if (!(error instanceof JobError)) throw error
}
