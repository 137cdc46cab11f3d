import { InterruptedError, type KnownError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { differingPaths, sameJson } from '../json/value.ts'
import { jobName } from '../text.ts'
import { WalkReading } from './coverage/read-list.ts'
import { identifyItems, type ListedItem, type StoredItem } from './items.ts'
import type { JobOptions } from './job.ts'
import { whyUntrusted } from './removals.ts'
import { runError, withLease } from './run.ts'
import type { Lease, Store } from './store.ts'
import type { Coverage, Job, PageSource } from './types.ts'
import { incompleteError, type ReadPage, readWalk } from './walk.ts'

// Compares a whole list with the mirror, and writes no rows. A list may move while it is read, so a difference is what two looks agree on: a page
// on which something is missing or different is asked for once more at once, and the whole list if it does not show rows of the mirror.

const KINDS = ['missing', 'extra', 'different'] as const

/** A difference between a list and the mirror. */
export interface Difference {
  /** `missing`: only in the list; `extra`: only in the mirror; `different`: another value. */
  kind: (typeof KINDS)[number]
  /** A JSON list if the key has several fields; null for an item without a usable key. */
  key: string | null
  /** The page that listed it; null: none did. */
  page: number | null
  /** The first dotted paths that differ. */
  paths: readonly string[]
  /** Why the item has no usable key. */
  reject: string | null
}

/** The result of a verification. */
export interface Differences {
  /** Distinct items of the list. */
  items: number
  counts: Record<Difference['kind'], number>
  /** The first of each kind. */
  listed: Difference[]
  /** Items that changed, came or left during the reading: these are no differences. */
  moved: number
  coverage: Coverage | null
  /** False if the reading was not trusted, so that extra rows are unknown. */
  isExtraKnown: boolean
}

export interface VerifyOptions
  extends Pick<
    JobOptions,
    | 'job'
    | 'source'
    | 'maxPasses'
    | 'waitForOwner'
    | 'now'
    | 'sleep'
    | 'yieldToEventLoop'
    | 'observe'
    | 'signal'
  > {
  store: Pick<Store, 'acquire' | 'release' | 'noteRetry' | 'lookup' | 'liveKeys'>
}

/** `differences` is null if the list could not be read or compared; `error` says why. */
export interface VerifyResult {
  job: Job
  differences: Differences | null
  error: KnownError | null
}

/** Compares a list with the mirror. Never throws. */
export async function verifyJob(options: VerifyOptions): Promise<VerifyResult> {
  const { job, observe, signal } = options
  const result: VerifyResult = { job, differences: null, error: null }
  try {
    result.differences = await withLease({ ...options, isVerify: true }, (lease, source, heard) => {
      if (lease.refusal) throw lease.refusal
      return new Comparison({ ...options, observe: heard }, lease, source).compare()
    })
  } catch (cause) {
    const error = runError(cause, signal)
    result.error =
      error instanceof InterruptedError ? new InterruptedError('stopped; nothing was written') : error
  }
  observe({ kind: 'verified', result })
  return result
}

/** How many differences of each kind are listed, and how many paths of each; all are counted. */
const LISTED = 20
const MOST_PATHS = 10

/** The first look at a difference, and the item as it was sent. */
interface Suspect {
  difference: Difference
  text: string
}

class Comparison {
  #options: VerifyOptions
  #lease: Lease
  #source: PageSource
  #ignore: ReadonlySet<string>
  #counts = { missing: 0, extra: 0, different: 0 }
  #listed: Difference[] = []
  #moved = 0
  /** What seems to differ, by page and id, until that page is asked for again. */
  #suspects = new Map<number, Map<string, Suspect>>()

  constructor(options: VerifyOptions, lease: Lease, source: PageSource) {
    this.#options = options
    this.#lease = lease
    this.#source = source
    this.#ignore = new Set(options.job.collection.ignore)
  }

  async compare(): Promise<Differences> {
    const first = await this.#readWhole((answer, stored) => this.#suspect(answer, stored))
    let isExtraKnown = first.isTrusted
    const extra = isExtraKnown ? await this.#notIn(first.reading) : new Set<string>()
    if (extra.size > 0) {
      const before = extra.size
      const second = await this.#readWhole(({ items }) => {
        for (const { id } of items) extra.delete(id)
      })
      this.#moved += before - extra.size
      isExtraKnown = second.isTrusted
      if (isExtraKnown)
        for (const key of extra) this.#report({ kind: 'extra', key, page: null, paths: [], reject: null })
    }
    return {
      items: first.reading.items,
      counts: this.#counts,
      listed: this.#listed.toSorted((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind)),
      moved: this.#moved,
      coverage: first.coverage,
      isExtraKnown,
    }
  }

  /** Reads the whole list; between two pages it looks again at what seemed to differ. */
  async #readWhole(hear: (answer: ReadPage, stored: readonly StoredItem[]) => void) {
    const { job, store, maxPasses, observe } = this.#options
    const { total } = job.collection
    const { lastCoverage } = this.#lease
    const reading = new WalkReading(
      { kind: 'full', firstPage: 1, total, maxPasses, lastCoverage },
      jobName(job),
    )
    let newRejects = 0
    observe({
      kind: 'start',
      walk: { id: 0, checkpoint: { pass: 1, nextPage: 1 }, resumed: false, rowsSeen: 0 },
    })
    const result = await readWalk({
      ...this.#options,
      source: this.#source,
      reading,
      betweenPages: { isDue: () => this.#suspects.size > 0, run: () => this.#lookAgain() },
      write: async (answer) => {
        const stored = await store.lookup(job, answer.items)
        hear(answer, stored)
        newRejects += answer.items.filter(
          (item, index) => 'reject' in item && stored[index]?.state === 'absent',
        ).length
        return { added: 0, changed: 0, notices: [] }
      },
    })
    if (result.kind === 'incomplete') throw incompleteError(job, result)
    await this.#lookAgain()
    return { coverage: result.coverage, reading, isTrusted: whyUntrusted(result, newRejects) === null }
  }

  /** What differs of the items that come for the first time. First met behind the reader: it was added or moved there after the reader had passed. */
  #suspect({ page, items, newToWalk, entry }: ReadPage, stored: readonly StoredItem[]): void {
    const suspects = new Map<string, Suspect>()
    const isForward = entry.why === 'forward' || entry.why === 'rejoin'
    for (const [index, item] of items.entries()) {
      const difference = newToWalk.has(item.id) ? this.#compare(item, stored[index], page.number) : null
      if (difference && isForward) suspects.set(item.id, { difference, text: item.item.text })
      else if (difference) this.#moved++
    }
    if (suspects.size > 0) this.#suspects.set(page.number, suspects)
  }

  /** Asks once more for each page on which something seems to differ. At once, so that little can have moved: what is not found again counts as moved. */
  async #lookAgain(): Promise<void> {
    const { job, store, observe, signal } = this.#options
    for (const [number, suspects] of this.#suspects) {
      const page = await this.#source.fetchPage(number, observe, signal)
      const items = identifyItems(job, page)
      const stored = await store.lookup(job, items)
      for (const [index, item] of items.entries()) {
        const suspect = suspects.get(item.id)
        if (!suspect || !this.#compare(item, stored[index], number)) continue
        if (!sameJson(parseExact(suspect.text), item.item.value, this.#ignore)) continue
        suspects.delete(item.id)
        this.#report(suspect.difference)
      }
      this.#moved += suspects.size
      this.#suspects.delete(number)
    }
  }

  /** Compares an item with the mirror; null: no difference. */
  #compare(listed: ListedItem, stored: StoredItem | undefined, page: number): Difference | null {
    const reject = 'reject' in listed ? listed.reject : null
    const difference = { key: reject === null ? listed.id : null, page, paths: [], reject }
    if (!stored || stored.state === 'absent') return { ...difference, kind: 'missing' }
    if (stored.state === 'same') return null
    const paths = differingPaths(parseExact(stored.text), listed.item.value, this.#ignore, MOST_PATHS)
    return paths.length === 0 ? null : { ...difference, kind: 'different', paths }
  }

  /** The live rows that a reading did not meet. */
  async #notIn(reading: WalkReading): Promise<Set<string>> {
    const { job, store, yieldToEventLoop, signal } = this.#options
    const unseen = new Set<string>()
    let from: string | null = null
    do {
      const { ids, next }: { ids: string[]; next: string | null } = await store.liveKeys(job, from)
      for (const id of ids) if (!reading.has(id)) unseen.add(id)
      from = next
      await yieldToEventLoop()
      signal.throwIfAborted()
    } while (from !== null)
    return unseen
  }

  #report(difference: Difference): void {
    if (this.#counts[difference.kind]++ < LISTED) this.#listed.push(difference)
  }
}
