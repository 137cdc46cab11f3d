import { JobError, type KnownError } from '../../errors.ts'
import type { PageTimes } from '../page-writer.ts'
import { countTraffic, noTraffic, runError, runOutcome } from '../run.ts'
import type { Lease, Run, RunRecord, RunTraffic, Store } from '../store.ts'
import type { Observe, PageSource, Urgency } from '../types.ts'
import { newestEnd, readEnds } from './read-ends.ts'
import { type RefreshPageEvent, type RefreshTools, refreshPage, type Written } from './read-page.ts'
import { type RefreshPolicy, sharingList } from './share.ts'
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
import { afterOlder, isWalkedWhole, nextOfVisit, nextReading, type Reading, type Share } from './worth.ts'

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
  if (state) policy?.note(state)
  /** The run of the last refresh: older pages that are read between two pages of a walk count there. */
  let last: Run | null = null

  function moveTo(after: RefreshState): SavedRefresh {
    state = after
    policy?.note(after)
    return savedRefresh(after, rules)
  }

  const save = (after: RefreshState) => store.saveRefresh(lease, moveTo(after))

  /** What is read next, if that is of this list. `isWalked`: a full walk of it is under way. */
  function ownNext(share: Share, isWalked: boolean): Reading | null {
    if (!policy || !state || (isWalked && isWalkedWhole(state))) return null
    const own = { ...sharingList(state, policy, now()), isWalked }
    // Whoever begins the refresh of a list has compared it with the others.
    const chosen = nextReading([own, ...policy.others(!isWalked)], share, policy.share.rules(), now())
    if (chosen?.list !== own) return null
    // Between two pages of a walk, older pages count for the run of the refresh before them.
    return isWalked && chosen.reading.band !== null && last === null ? null : chosen.reading
  }

  function toolsOf(run: Run): RefreshTools {
    const counting: RefreshTools['observe'] = (event) => {
      countTraffic(run.traffic, event)
      observe(event)
    }
    return { ...options, run, observe: counting }
  }

  /** Runs `read`, for which `charged` requests are charged already, and charges the others. */
  async function paying(
    run: Run,
    charged: number,
    read: (tools: RefreshTools) => Promise<void>,
  ): Promise<void> {
    const before = run.traffic.requests
    try {
      await read(toolsOf(run))
    } finally {
      await correctCharge(run.traffic.requests - before - charged)
    }
  }

  /** Corrects a charge: `requests` were sent beyond it, or, below 0, were charged and not sent. */
  async function correctCharge(requests: number): Promise<void> {
    if (requests !== 0) await policy?.share.take(() => ({ cost: requests }))
  }

  async function readNewest(tools: RefreshTools, from: RefreshState, startedAt: number): Promise<void> {
    const reading = readEnds<string>(from, rules, startedAt)
    let step = reading.next()
    while (!step.done) {
      const answer = await refreshPage(tools, step.value, 'refresh').catch((error: unknown) => {
        if (error instanceof JobError) return error
        throw error
      })
      if (answer instanceof Error) step = reading.next(answer)
      else {
        const { total, next: after, lastPage } = answer.page
        const found = answer.rowsAdded - from.rowsAdded
        step = reading.next({ at: answer.at, items: answer.items, total, next: after, lastPage, found })
      }
    }
    await save(notAfter({ ...step.value.state, share: policy?.share.rules().perMinute ?? null }, now()))
  }

  async function readOlder(tools: RefreshTools, reading: Reading, urgency: Urgency): Promise<void> {
    const from = state
    if (!from) return
    const after = (written: Written | null): RefreshState => {
      const found = written && written.added + written.changed
      const freshness = afterOlder(from.freshness, reading, found, from.lastPage, now())
      return { ...from, older: from.older + (written?.added ?? 0), freshness }
    }
    try {
      await refreshPage(tools, pageAt(reading.depth, from), urgency, (written) => moveTo(after(written)))
    } catch (error) {
      // A page that cannot be read would be asked for again and again.
      moveTo(after(null))
      throw error
    }
  }

  /** The page at this depth, counted from the newest end. */
  function pageAt(depth: number, { places, lastPage }: RefreshState): number {
    return newestEnd(places, rules.newest) === 'last' ? Math.max(1, lastPage - depth + 1) : depth
  }

  /** One refresh with its line of `sync_runs`. Throws only where it could not begin. */
  async function refreshNow(isAsked: boolean, first: Reading, within: Run | null): Promise<RefreshResult> {
    if (!state) throw new Error('a list is refreshed only after its first complete full walk')
    const begunAt = now()
    const from = notAfter(state, begunAt)
    // One that fails or is killed is not begun again at once.
    const begun =
      first.band === null ? { ...from, freshness: { ...from.freshness, newestAt: begunAt } } : from
    const id = await store.beginRefresh(lease, moveTo(begun), within).catch(async (error: unknown) => {
      await correctCharge(-first.cost).catch(() => {})
      throw error
    })
    const run: Run = { id, traffic: noTraffic() }
    last = run
    let error: KnownError | null = null
    try {
      if (first.band === null) await paying(run, first.cost, (tools) => readNewest(tools, from, begunAt))
      else {
        let reading: Reading | null = first
        for (let pages = 1; reading; pages++) {
          const older: Reading = reading
          await paying(run, older.cost, (tools) => readOlder(tools, older, 'older'))
          reading = policy
            ? await policy.share.take((share) =>
                state
                  ? nextOfVisit(sharingList(state, policy, now()), share, policy.share.rules(), pages, now())
                  : null,
              )
            : null
        }
      }
    } catch (cause) {
      error = runError(cause, signal)
      await store.saveRefresh(lease, savedRefresh(state, rules))
    }
    const record = await store.finishRun(run, runOutcome(error, null, run.traffic))
    const saved = savedRefresh(state, rules)
    const tookMs = Math.max(0, now() - begunAt)
    const result = { runId: id, tookMs, run: { ...record, ...run.traffic }, saved, isAsked, error }
    observe({ kind: 'refresh', result })
    return result
  }

  const isClaimAhead = () => state !== null && isAhead(state, now())

  /** Withdraws what was claimed by a clock that ran ahead and was set back. */
  async function heedClock(): Promise<void> {
    if (state && isClaimAhead()) await save(notAfter(state, now()))
  }

  /** Charges what is read next of this list, and returns it. If it was asked for, that is its newest end. */
  async function takeNext(isAsked: boolean): Promise<Reading | null> {
    if (!state) return null
    const newest: Reading = {
      worth: 0,
      band: null,
      depth: 1,
      cost: isWalkedWhole(state) ? state.lastPage + 1 : 2,
    }
    if (!policy) return isAsked ? { ...newest, cost: 0 } : null
    return policy.share.take((share) => (isAsked ? newest : ownNext(share, false)))
  }

  return {
    /** What the next refresh starts from; null if none is possible yet. */
    state: () => state && notAfter(state, now()),
    heedClock,
    /** Whether a walk has to give way between two of its pages, as far as this process knows what others have charged. */
    isDue: () => isClaimAhead() || (policy !== null && ownNext(policy.share.known(), true) !== null),
    /**
     * Refreshes the newest end if that is due, else reads one older page if that is worth more than all else of its budget. A failed refresh
     * is reported by its event, and an older page that fails with a JobError is skipped. Any other error of an older page, and any of the
     * store, ends the walk.
     */
    async runBetweenPages(walk: Run) {
      await heedClock()
      const reading = (await policy?.share.take((share) => ownNext(share, true))) ?? null
      if (!reading) return
      if (reading.band === null) await refreshNow(false, reading, walk)
      else if (last)
        await paying(last, reading.cost, (tools) => readOlder(tools, reading, 'walk')).catch(ignoreJobError)
    },
    /** Refreshes the job: if it `isAsked`, its newest end, now; else what is worth most of it. Null: there was nothing to do. */
    async refresh({ isAsked }: { isAsked: boolean }): Promise<RefreshResult | null> {
      const reading = await takeNext(isAsked)
      return reading && refreshNow(isAsked, reading, null)
    },
    /** Charges the walk of a short list in place of a refresh, and returns the requests. Null: none is due, or the share has no room. */
    async chargeWalk({ isAsked }: { isAsked: boolean }): Promise<number | null> {
      // A list that was never read whole is walked, too.
      if (!state) return 0
      return (await takeNext(isAsked))?.cost ?? null
    },
    correctCharge,
  }
}

/** An older page that cannot be read is no reason to end a walk; a walk meets all other errors itself. */
function ignoreJobError(error: unknown): void {
  if (!(error instanceof JobError)) throw error
}
