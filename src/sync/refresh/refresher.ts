import { JobError, type KnownError } from '../../errors.ts'
import { countTraffic, noTraffic, runError, runOutcome } from '../run.ts'
import type { Run, RunRecord, RunTraffic } from '../store.ts'
import type { Observe, Urgency } from '../types.ts'
import { newestEnd, readEnds } from './read-ends.ts'
import { type RefreshPageEvent, type RefreshTools, refreshPage } from './read-page.ts'
import { type RefreshPolicy, sharingList } from './share.ts'
import {
  claimsFuture,
  notAfter,
  type RefreshState,
  rulesOf,
  type SavedRefresh,
  savedRefresh,
  scopeText,
  stateOf,
} from './state.ts'
import {
  afterOlder,
  isWalkedWhole,
  nextOfVisit,
  nextReading,
  type Reading,
  readingOfNewest,
  type Share,
} from './worth.ts'

export interface RefresherOptions extends Omit<RefreshTools, 'run' | 'observe'> {
  observe: Observe<RefreshEvent>
  /** Null: the job is not refreshed by itself. */
  policy: RefreshPolicy | null
  now: () => number
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

/** The refreshes of a job while this process has it. What they send is charged to the share before, and corrected after. */
export class Refresher {
  #options: RefresherOptions
  #rules: ReturnType<typeof rulesOf>
  #state: RefreshState | null
  /** The run of the last refresh: older pages that are read between two pages of a walk count there. */
  #lastRun: Run | null = null

  constructor(options: RefresherOptions) {
    const { job, refresh } = options.lease
    this.#options = options
    this.#rules = rulesOf(job)
    this.#state = stateOf(refresh, scopeText(job))
    if (this.#state) options.policy?.note(this.#state)
  }

  /** What the next refresh starts from; null if none is possible yet. */
  get state(): RefreshState | null {
    return this.#state && notAfter(this.#state, this.#options.now())
  }

  /** Withdraws what was claimed by a clock that ran ahead and was set back. */
  async heedClock(): Promise<void> {
    const { store, lease, now } = this.#options
    if (this.#state && claimsFuture(this.#state, now()))
      await store.saveRefresh(lease, this.#moveTo(notAfter(this.#state, now())))
  }

  /** Whether a walk has to give way between two of its pages, as far as this process knows what others have charged. */
  isDue(): boolean {
    const { policy, now } = this.#options
    if (this.#state && claimsFuture(this.#state, now())) return true
    return policy !== null && this.#ownNext(policy.share.known(), true) !== null
  }

  /**
   * Refreshes the newest end if that is due, else reads one older page if that is worth more than all else of its budget. A failed refresh
   * is reported by its event, and an older page that fails with a JobError is skipped. Any other error of an older page, and any of the
   * store, ends the walk.
   */
  async runBetweenPages(walk: Run): Promise<void> {
    const { policy } = this.#options
    await this.heedClock()
    const reading = (await policy?.share.take((share) => this.#ownNext(share, true))) ?? null
    if (reading?.band === null) await this.refresh(reading, { isAsked: false, within: walk })
    else if (reading && this.#lastRun)
      await this.#paying(this.#lastRun, reading, (tools) => this.#readOlder(tools, reading, 'walk')).catch(
        (error: unknown) => {
          if (!(error instanceof JobError)) throw error
        },
      )
  }

  /** Charges what is read next of this list, and returns it; if it was asked for, that is its newest end. Null: there is nothing to do. */
  async takeNext(isAsked: boolean): Promise<Reading | null> {
    const { policy } = this.#options
    if (!this.#state) return null
    const newest = readingOfNewest(this.#state)
    if (!policy) return isAsked ? newest : null
    return policy.share.take((share) => (isAsked ? newest : this.#ownNext(share, false)))
  }

  /** One refresh with its line of `sync_runs`, that is charged already. `within`: the run of the walk that it interrupts. Throws only where it could not begin. */
  async refresh(
    first: Reading,
    { isAsked, within = null }: { isAsked: boolean; within?: Run | null },
  ): Promise<RefreshResult> {
    const { store, lease, observe, now, signal } = this.#options
    const from = this.state
    if (!from) throw new Error('a list is refreshed only after its first complete full walk')
    const begunAt = now()
    const isNewest = first.band === null
    // One that fails or is killed is not begun again at once.
    const begun = isNewest ? { ...from, freshness: { ...from.freshness, newestAt: begunAt } } : from
    const id = await store.beginRefresh(lease, this.#moveTo(begun), within).catch(async (error: unknown) => {
      await this.charge(-first.cost).catch(() => {})
      throw error
    })
    const run: Run = { id, traffic: noTraffic() }
    this.#lastRun = run
    let error: KnownError | null = null
    try {
      if (isNewest) await this.#paying(run, first, (tools) => this.#readNewest(tools, from, begunAt))
      else await this.#visitOlder(run, first)
    } catch (cause) {
      error = runError(cause, signal)
      await store.saveRefresh(lease, this.#saved())
    }
    const record = await store.finishRun(run, runOutcome(error, null, run.traffic))
    const tookMs = Math.max(0, now() - begunAt)
    const result = {
      runId: id,
      tookMs,
      run: { ...record, ...run.traffic },
      saved: this.#saved(),
      isAsked,
      error,
    }
    observe({ kind: 'refresh', result })
    return result
  }

  /** Charges what was sent beyond the charge, or takes back what was not sent. */
  async charge(requests: number): Promise<void> {
    if (requests !== 0) await this.#options.policy?.share.take(() => ({ cost: requests }))
  }

  /** What is read next, if that is of this list. `isWalked`: a full walk of it is under way. */
  #ownNext(share: Share, isWalked: boolean): Reading | null {
    const { policy, now } = this.#options
    if (!policy || !this.#state || (isWalked && isWalkedWhole(this.#state))) return null
    const own = { ...sharingList(this.#state, policy, now()), isWalked }
    // Whoever begins the refresh of a list has compared it with the others.
    const chosen = nextReading([own, ...policy.others(!isWalked)], share, policy.share.rules(), now())
    if (chosen?.list !== own) return null
    const { reading } = chosen
    return isWalked && reading.band !== null && this.#lastRun === null ? null : reading
  }

  async #readNewest(tools: RefreshTools, from: RefreshState, startedAt: number): Promise<void> {
    const { store, lease, policy, now } = this.#options
    const ends = readEnds<string>(from, this.#rules, startedAt)
    let step = ends.next()
    while (!step.done) {
      const answer = await refreshPage(tools, step.value, 'refresh').catch((error: unknown) => {
        if (error instanceof JobError) return error
        throw error
      })
      if (answer instanceof Error) step = ends.next(answer)
      else {
        const { at, items, page, rowsAdded } = answer
        const { total, next, lastPage } = page
        step = ends.next({ at, items, total, next, lastPage, found: rowsAdded - from.rowsAdded })
      }
    }
    const perMinute = policy?.share.rules().perMinute ?? null
    await store.saveRefresh(lease, this.#moveTo(notAfter({ ...step.value.state, share: perMinute }, now())))
  }

  async #visitOlder(run: Run, first: Reading): Promise<void> {
    const { policy, now } = this.#options
    let reading: Reading | null = first
    for (let pages = 1; reading; pages++) {
      const older: Reading = reading
      await this.#paying(run, older, (tools) => this.#readOlder(tools, older, 'older'))
      reading = policy
        ? await policy.share.take((share) =>
            this.#state
              ? nextOfVisit(
                  sharingList(this.#state, policy, now()),
                  share,
                  policy.share.rules(),
                  pages,
                  now(),
                )
              : null,
          )
        : null
    }
  }

  async #readOlder(tools: RefreshTools, { band, depth }: Reading, urgency: Urgency): Promise<void> {
    const from = this.#state
    if (!from) return
    const { places, lastPage } = from
    const page = newestEnd(places, this.#rules.newest) === 'last' ? Math.max(1, lastPage - depth + 1) : depth
    const after = (found: number | null, added: number): RefreshState => {
      const freshness = afterOlder(from.freshness, { band, depth }, found, lastPage, this.#options.now())
      return { ...from, older: from.older + added, freshness }
    }
    try {
      await refreshPage(tools, page, urgency, ({ added, changed }) =>
        this.#moveTo(after(added + changed, added)),
      )
    } catch (error) {
      // A page that cannot be read would be asked for again and again.
      this.#moveTo(after(null, 0))
      throw error
    }
  }

  /** Runs `read`, whose cost is charged already, and charges what it sent beyond. */
  async #paying(run: Run, { cost }: Reading, read: (tools: RefreshTools) => Promise<void>): Promise<void> {
    const { observe } = this.#options
    const before = run.traffic.requests
    const counting: RefreshTools['observe'] = (event) => {
      countTraffic(run.traffic, event)
      observe(event)
    }
    try {
      await read({ ...this.#options, run, observe: counting })
    } finally {
      await this.charge(run.traffic.requests - before - cost)
    }
  }

  #moveTo(after: RefreshState): SavedRefresh {
    this.#state = after
    this.#options.policy?.note(after)
    return savedRefresh(after, this.#rules)
  }

  #saved(): SavedRefresh {
    if (!this.#state) throw new Error('a refresh that began has a state')
    return savedRefresh(this.#state, this.#rules)
  }
}
