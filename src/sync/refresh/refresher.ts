import type { KnownError } from '../../errors.ts'
import { identifyItems } from '../items.ts'
import { type PageTimes, writePage } from '../page-writer.ts'
import { countTraffic, noTraffic, runError, runOutcome } from '../run.ts'
import type { Lease, Run, RunRecord, RunTraffic, Store } from '../store.ts'
import type { Notice, Observe, Page, PageSource, RequestEvent, Urgency } from '../types.ts'
import { mayBePastEnd, type RefreshItem } from './ends.ts'
import type { RefreshPolicy } from './share.ts'
import { addedElsewhere, notAfter, readEnds, type RefreshState } from './state.ts'
import { afterOlder, isWalkedWhole, NEWEST, nextReading, pageOf, type Reading } from './worth.ts'

export interface RefresherOptions {
  store: Store
  lease: Lease
  source: PageSource
  times: Pick<PageTimes, 'ofRefresh'>
  /** Null: the job is not refreshed by itself. */
  policy: RefreshPolicy | null
  now: () => number
  observe: Observe<RefreshEvent>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

export type RefreshEvent =
  | RequestEvent
  | { kind: 'notices'; page: number; notices: readonly Notice[] }
  | { kind: 'refresh'; result: RefreshResult }

/** How a refresh ended. */
export interface RefreshResult {
  /** Its line of `sync_runs`, and its duration in milliseconds. */
  runId: number
  tookMs: number
  run: RunRecord & RunTraffic
  state: RefreshState
  /** Whether it was asked for, instead of due. */
  isAsked: boolean
  error: KnownError | null
}

/** The refreshes of a job that was read whole, while this process has it. A page is charged to the share before it is asked for; further tries of it are charged afterwards. */
export class Refresher {
  /** What the next refresh starts from. */
  state: RefreshState
  #options: RefresherOptions
  /** A walk that ends before its newest end is due reads the older pages itself. */
  #hasReadNewest = false

  /** @param state What was saved. */
  constructor(options: RefresherOptions, state: RefreshState) {
    this.#options = options
    this.state = state
    options.policy?.note(state)
  }

  /** Whether a walk has to give way between two of its pages, as far as this process knows what others have charged. */
  isDue(): boolean {
    const { policy } = this.#options
    return policy !== null && this.#ownNext(policy.share.level(), true) !== null
  }

  /** Refreshes what is due of the list. A failed refresh is reported by its event; only an error of the store ends the walk. */
  async runBetweenPages(walk: Run): Promise<void> {
    const reading = await this.#take((level) => this.#ownNext(level, true))
    if (reading) await this.refresh(reading, false, walk)
  }

  /** Charges a page of what is read next of this list, and returns that; if it was asked for, its newest end. Null: there is nothing to do. */
  async takeNext(isAsked: boolean): Promise<Reading | null> {
    return this.#take((level) => (isAsked ? NEWEST : this.#ownNext(level, false)))
  }

  /** Charges requests, or takes back what was charged and not sent. */
  async charge(requests: number): Promise<void> {
    if (requests !== 0) await this.#options.policy?.share.take(() => true, requests)
  }

  async #take(decide: (level: number) => Reading | null): Promise<Reading | null> {
    const { policy } = this.#options
    return policy ? policy.share.take(decide) : decide(0)
  }

  /**
   * One refresh with its line of `sync_runs`, whose first page is charged. Throws only where it could not begin.
   * @param within The run of the walk that it interrupts.
   */
  async refresh(first: Reading, isAsked: boolean, within: Run | null = null): Promise<RefreshResult> {
    const { store, lease, observe, now, signal } = this.#options
    const from = this.state
    const begunAt = now()
    const isNewest = first.band === null
    // One that fails or is killed is not begun again at once.
    if (isNewest) this.#moveTo({ ...from, newestAt: begunAt })
    this.#hasReadNewest ||= isNewest
    const run = { id: await store.beginRefresh(lease, this.state, within), traffic: noTraffic() }
    let error: KnownError | null = null
    try {
      if (isNewest) await this.#readNewest(run, from, begunAt)
      else await this.#visitOlder(run, first, within ? 'walk' : 'older')
    } catch (cause) {
      error = runError(cause, signal)
    }
    const { state } = this
    await store.saveRefresh(lease, state)
    const record = await store.finishRun(run, runOutcome(error, null, run.traffic))
    const tookMs = Math.max(0, now() - begunAt)
    const result = { runId: run.id, tookMs, run: { ...record, ...run.traffic }, state, isAsked, error }
    observe({ kind: 'refresh', result })
    return result
  }

  /** After a walk in place of a refresh failed: as a refresh that fails, it is not begun again at once, before other lists. */
  async endFailedWalk(): Promise<void> {
    const { store, lease, now } = this.#options
    this.#moveTo({ ...this.state, newestAt: now() })
    await store.saveRefresh(lease, this.state)
  }

  /** What is read next, if that is of this list. `isWalked`: a full walk of it is under way. */
  #ownNext(level: number, isWalked: boolean): Reading | null {
    const { policy, now } = this.#options
    if (!policy || (isWalked && isWalkedWhole(this.state))) return null
    const own = { ...this.state, ...policy, isWalked }
    // Whoever begins the refresh of a list has compared it with the others.
    const others = policy.others().map((list) => ({ ...list, isTaken: !isWalked }))
    const next = nextReading([own, ...others], level, policy.share.perMinute(), now())
    const isEarly = isWalked && next?.reading.band !== null && !this.#hasReadNewest
    return next?.list === own && !isEarly ? next.reading : null
  }

  async #readNewest(run: Run, from: RefreshState, startedAt: number): Promise<void> {
    const { lease, now } = this.#options
    const ends = readEnds<string>(from, lease.job.collection.newest, startedAt)
    let step = ends.next()
    for (let pages = 1; !step.done; pages++) {
      if (pages > 1) await this.charge(1)
      step = await this.#readPage(run, step.value, 'refresh').then(
        (answer) => ends.next(answer),
        (error: unknown) => ends.throw(error),
      )
    }
    this.#moveTo(notAfter(step.value.state, now()))
  }

  /** Reads older pages of the list, as long as they are worth most of it and the share has room. */
  async #visitOlder(run: Run, first: Reading, urgency: Urgency): Promise<void> {
    const { policy, now } = this.#options
    let reading: Reading | null = first
    for (let pages = 1; reading; pages++) {
      const from = this.state
      const page = pageOf(from, reading)
      let read: { added: number; changed: number } | null = null
      try {
        read = await this.#readPage(run, page, urgency)
      } catch (error) {
        // If it is refused for another reason, the next reading of the newest end says so.
        if (mayBePastEnd(error, page)) return
        throw error
      } finally {
        // A page that cannot be read would else be asked for again and again.
        const known = afterOlder(from, reading, read && read.added + read.changed, now())
        this.#moveTo(addedElsewhere(known, read?.added ?? 0))
      }
      const own = policy && { ...this.state, ...policy }
      reading = await this.#take(
        (level) => own && (nextReading([own], level, own.share.perMinute(), now(), pages)?.reading ?? null),
      )
    }
  }

  /** Asks for one page, which is charged, and writes it. */
  async #readPage(run: Run, number: number, urgency: Urgency) {
    const { store, lease, source, times, observe, yieldToEventLoop, signal } = this.#options
    let sent = 0
    const count = (event: RequestEvent) => {
      countTraffic(run.traffic, event)
      if (event.kind === 'request') sent++
      observe(event)
    }
    let page: Page
    try {
      page = await source.fetchPage(number, count, signal, urgency)
    } finally {
      // It may have been tried several times, or never left.
      await this.charge(sent - 1)
    }
    const listed = identifyItems(lease.job, page)
    const at = times.ofRefresh()
    const written = await writePage(store, lease, run, { page, items: listed, at, answer: null })
    await yieldToEventLoop()
    const { upserts, stored, added, changed, rowsAdded, newRejects: rejected, notices } = written
    const upserted = new Set(upserts.map(({ key }) => key.id))
    const items = listed.map((item, index): RefreshItem<string> => {
      const known = stored[index]
      if (known?.state === 'absent' && 'key' in item)
        return { id: item.id, seen: { firstAt: at, changedAt: at } }
      const before = known && 'times' in known ? known.times : null
      return { id: item.id, seen: before && upserted.has(item.id) ? { ...before, changedAt: at } : before }
    })
    // The same reject comes with every refresh; only the first one reports it.
    const news = notices.filter(({ event }) => rejected > 0 || event !== 'items_rejected')
    observe({ kind: 'notices', page: number, notices: news })
    const { total, next, lastPage } = page
    return { page: number, at, items, total, next, lastPage, rowsAdded, rejected, added, changed }
  }

  #moveTo(after: RefreshState): void {
    this.state = after
    this.#options.policy?.note(after)
  }
}
