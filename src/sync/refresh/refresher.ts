import { JobError, type KnownError } from '../../errors.ts'
import { countTraffic, noTraffic, runError, runOutcome } from '../run.ts'
import type { Run, RunRecord, RunTraffic } from '../store.ts'
import type { Observe, Urgency } from '../types.ts'
import { type RefreshedPage, type RefreshPageEvent, type RefreshTools, refreshPage } from './read-page.ts'
import type { RefreshPolicy } from './share.ts'
import {
  newestEnd,
  notAfter,
  type RefreshState,
  readEnds,
  type SavedRefresh,
  savedRefresh,
  scopeText,
  stateOf,
} from './state.ts'
import {
  afterOlder,
  costOfNewest,
  isWalkedWhole,
  nextOfVisit,
  nextReading,
  type Reading,
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
  #state: RefreshState | null
  /** A walk that ends before its newest end is due reads the older pages itself. */
  #hasReadNewest = false

  constructor(options: RefresherOptions) {
    const { lease, policy, now } = options
    this.#options = options
    const state = stateOf(lease.refresh, scopeText(lease.job))
    this.#state = state && notAfter(state, now())
    if (state) policy?.note(state)
  }

  /** What the next refresh starts from; null if none is possible yet. */
  get state(): RefreshState | null {
    return this.#state && notAfter(this.#state, this.#options.now())
  }

  /** Whether a walk has to give way between two of its pages, as far as this process knows what others have charged. */
  isDue(): boolean {
    const { policy } = this.#options
    return policy !== null && this.#ownNext(policy.share.known(), true) !== null
  }

  /** Refreshes what is due of the list. A failed refresh is reported by its event; only an error of the store ends the walk. */
  async runBetweenPages(walk: Run): Promise<void> {
    const reading = await this.#options.policy?.share.take((share) => this.#ownNext(share, true))
    if (reading) await this.refresh(reading, { isAsked: false, within: walk })
  }

  /** Charges what is read next of this list, and returns it; if it was asked for, that is its newest end. Null: there is nothing to do. */
  async takeNext(isAsked: boolean): Promise<Reading | null> {
    const { policy } = this.#options
    if (!this.#state) return null
    const newest = { worth: 0, band: null, depth: 1, cost: costOfNewest(this.#state) }
    if (!policy) return isAsked ? newest : null
    return policy.share.take((share) => (isAsked ? newest : this.#ownNext(share, false)))
  }

  /** Charges what was sent beyond the charge, or takes back what was not sent. */
  async charge(requests: number): Promise<void> {
    if (requests !== 0) await this.#options.policy?.share.take(() => ({ cost: requests }))
  }

  /** One refresh with its line of `sync_runs`, whose first reading is charged. `within`: the run of the walk that it interrupts. Throws only where it could not begin. */
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
    if (isNewest) {
      this.#hasReadNewest = true
      this.#moveTo({ ...from, freshness: { ...from.freshness, newestAt: begunAt } })
    }
    const run: Run = { id: await store.beginRefresh(lease, this.#saved(), within), traffic: noTraffic() }
    const tools: RefreshTools = {
      ...this.#options,
      run,
      observe(event) {
        countTraffic(run.traffic, event)
        observe(event)
      },
    }
    let error: KnownError | null = null
    try {
      if (isNewest) await this.#readNewest(tools, from, first, begunAt)
      else await this.#visitOlder(tools, first, within ? 'walk' : 'older')
    } catch (cause) {
      error = runError(cause, signal)
    }
    await store.saveRefresh(lease, this.#saved())
    const record = await store.finishRun(run, runOutcome(error, null, run.traffic))
    const tookMs = Math.max(0, now() - begunAt)
    const sent = { ...record, ...run.traffic }
    const result = { runId: run.id, tookMs, run: sent, saved: this.#saved(), isAsked, error }
    observe({ kind: 'refresh', result })
    return result
  }

  /** What is read next, if that is of this list. `isWalked`: a full walk of it is under way. */
  #ownNext(share: Share, isWalked: boolean): Reading | null {
    const { policy, now } = this.#options
    if (!policy || !this.#state || (isWalked && isWalkedWhole(this.#state))) return null
    const own = { ...this.#state, ...policy, isWalked }
    // Whoever begins the refresh of a list has compared it with the others.
    const others = policy.others().map((list) => ({ ...list, isTaken: !isWalked }))
    const chosen = nextReading([own, ...others], share, policy.share.rules(), now())
    if (chosen?.list !== own || (isWalked && chosen.reading.band !== null && !this.#hasReadNewest))
      return null
    return chosen.reading
  }

  async #readNewest(
    tools: RefreshTools,
    from: RefreshState,
    first: Reading,
    startedAt: number,
  ): Promise<void> {
    const { lease, policy, now } = this.#options
    const ends = readEnds<string>(from, lease.job.collection, startedAt)
    const ask = async (page: number) => {
      const answer = await refreshPage(tools, page, 'refresh')
      return { ...answer, found: answer.rowsAdded - from.rowsAdded }
    }
    try {
      let step = ends.next()
      while (!step.done)
        step = ends.next(
          await ask(step.value).catch((error: unknown) => {
            if (error instanceof JobError) return error
            throw error
          }),
        )
      const share = policy?.share.rules().perMinute ?? null
      this.#moveTo(notAfter({ ...step.value.state, share }, now()))
    } finally {
      await this.charge(tools.run.traffic.requests - first.cost)
    }
  }

  /** Reads older pages of the list, as long as they are worth most of it and the share has room. */
  async #visitOlder(tools: RefreshTools, first: Reading, urgency: Urgency): Promise<void> {
    const { policy, now } = this.#options
    const { traffic } = tools.run
    for (let [reading, pages]: [Reading | null, number] = [first, 1]; reading; pages++) {
      const before = traffic.requests
      try {
        await this.#readOlder(tools, reading, urgency)
      } finally {
        await this.charge(traffic.requests - before - reading.cost)
      }
      if (!policy || !this.#state) return
      const own = { ...this.#state, ...policy }
      reading = await policy.share.take((share) =>
        nextOfVisit(own, share, policy.share.rules(), pages, now()),
      )
    }
  }

  async #readOlder(tools: RefreshTools, { band, depth }: Reading, urgency: Urgency): Promise<void> {
    const { lease, now } = this.#options
    const from = this.#state
    if (!from) return
    const { places, lastPage, freshness } = from
    const isLast = newestEnd(places, lease.job.collection.newest) === 'last'
    const number = isLast ? Math.max(1, lastPage - depth + 1) : depth
    let read: RefreshedPage | null = null
    try {
      read = await refreshPage(tools, number, urgency)
    } finally {
      // A page that cannot be read would else be asked for again and again.
      const found = read && read.added + read.changed
      const known = afterOlder(freshness, { band, depth }, found, lastPage, now())
      this.#moveTo({ ...from, older: from.older + (read?.added ?? 0), freshness: known })
    }
  }

  #moveTo(after: RefreshState): void {
    this.#state = after
    this.#options.policy?.note(after)
  }

  #saved(): SavedRefresh {
    if (!this.#state) throw new Error('a refresh that began has a state')
    return savedRefresh(this.#state, this.#options.lease.job.collection)
  }
}
