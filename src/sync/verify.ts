import { InterruptedError, type KnownError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { differingFields, sameJson } from '../json/value.ts'
import { jobName } from '../text.ts'
import { WalkReading } from './coverage/read-list.ts'
import { identifyItems, type ListedItem, type StoredItem } from './items.ts'
import type { JobOptions } from './job.ts'
import { whyUntrusted } from './removals.ts'
import { runError, withLease } from './run.ts'
import type { Store } from './store.ts'
import type { Coverage, Job, PageSource } from './types.ts'
import { incompleteError, type ReadPage, readWalk } from './walk.ts'

// Compares a whole list with the mirror, and writes no rows. A list may move while it is read, so a difference is what two looks agree on: a page
// on which something is missing or different is asked for once more at once, and the whole list if it does not show rows of the mirror.

export const KINDS = ['missing', 'extra', 'different'] as const

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
  /** In the order of `KINDS`. */
  found: Difference[]
  /** Items that changed, came or left during the reading: these are no differences. */
  moved: number
  coverage: Coverage | null
  /** False if the reading was not trusted, so that extra rows are unknown. */
  isExtraKnown: boolean
}

type Absent = 'plan' | 'trigger' | 'store' | 'removals' | 'refresh' | 'instead'

export interface VerifyOptions extends Omit<JobOptions, Absent> {
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
      return compare({ ...options, observe: heard, source, lastCoverage: lease.lastCoverage })
    })
  } catch (cause) {
    const error = runError(cause, signal)
    result.error =
      error instanceof InterruptedError ? new InterruptedError('stopped; nothing was written') : error
  }
  observe({ kind: 'verified', result })
  return result
}

/** So many paths of a difference are told. */
const MOST_PATHS = 10

/** The first look at a difference, and the item as it was sent. */
interface Suspect {
  difference: Difference
  text: string
}

interface CompareOptions extends Omit<VerifyOptions, 'source'> {
  source: PageSource
  lastCoverage: Coverage | null
}

async function compare(options: CompareOptions): Promise<Differences> {
  const { job, store, source, maxPasses, lastCoverage, yieldToEventLoop, observe, signal } = options
  const ignore = new Set(job.collection.ignore)
  const counts = { missing: 0, extra: 0, different: 0 }
  const found: Difference[] = []
  let moved = 0
  /** What seems to differ, by page and id, until that page is asked for again. */
  const suspects = new Map<number, Map<string, Suspect>>()

  const report = (difference: Difference) => {
    counts[difference.kind]++
    found.push(difference)
  }

  /** Compares an item with the mirror; null: no difference. */
  function compareItem(item: ListedItem, stored: StoredItem | undefined, page: number): Difference | null {
    const reject = 'reject' in item ? item.reject : null
    const difference = { key: reject === null ? item.id : null, page, paths: [], reject }
    if (!stored || stored.state === 'absent') return { ...difference, kind: 'missing' }
    if (stored.state === 'same') return null
    const fields = differingFields(parseExact(stored.text), item.item.value, ignore).take(MOST_PATHS)
    const paths = [...fields].map((names) => names.join('.'))
    return paths.length === 0 ? null : { ...difference, kind: 'different', paths }
  }

  /** What differs of the items that come for the first time. First met behind the reader: it was added or moved there after the reader had passed. */
  function suspect({ page, items, newToWalk, entry }: ReadPage, stored: readonly StoredItem[]): void {
    const suspected = new Map<string, Suspect>()
    const isForward = entry.why === 'forward' || entry.why === 'rejoin'
    for (const [index, item] of items.entries()) {
      const difference = newToWalk.has(item.id) ? compareItem(item, stored[index], page.number) : null
      if (difference && isForward) suspected.set(item.id, { difference, text: item.item.text })
      else if (difference) moved++
    }
    if (suspected.size > 0) suspects.set(page.number, suspected)
  }

  /** Asks once more for each page on which something seems to differ. At once, so that little can have moved: what is not found again counts as moved. */
  async function lookAgain(): Promise<void> {
    for (const [number, seen] of suspects) {
      const items = identifyItems(job, await source.fetchPage(number, observe, signal))
      const stored = await store.lookup(job, items)
      for (const [index, item] of items.entries()) {
        const before = seen.get(item.id)
        if (!before || !compareItem(item, stored[index], number)) continue
        const { text, value } = item.item
        if (before.text !== text && !sameJson(parseExact(before.text), value, ignore)) continue
        seen.delete(item.id)
        report(before.difference)
      }
      moved += seen.size
      suspects.delete(number)
    }
  }

  /** Reads the whole list; between two pages it looks again at what seemed to differ. */
  async function readWhole(hear: (answer: ReadPage, stored: readonly StoredItem[]) => void) {
    const { total } = job.collection
    const rules = { kind: 'full', firstPage: 1, total, maxPasses, lastCoverage } as const
    const reading = new WalkReading(rules, jobName(job))
    let newRejects = 0
    const result = await readWalk({
      ...options,
      reading,
      betweenPages: { isDue: () => suspects.size > 0, run: lookAgain },
      write: async (answer) => {
        const { items } = answer
        const stored = await store.lookup(job, items)
        hear(answer, stored)
        const isNew = (item: ListedItem, index: number) =>
          'reject' in item && stored[index]?.state === 'absent'
        newRejects += items.filter(isNew).length
        return { added: 0, changed: 0, notices: [] }
      },
    })
    if (result.kind === 'incomplete') throw incompleteError(job, result)
    await lookAgain()
    return { coverage: result.coverage, reading, isTrusted: whyUntrusted(result, newRejects) === null }
  }

  /** The live rows that a reading did not meet. */
  async function notIn(reading: WalkReading): Promise<Set<string>> {
    const unseen = new Set<string>()
    for (let from: string | null = null; ;) {
      const { ids, next }: { ids: string[]; next: string | null } = await store.liveKeys(job, from)
      for (const id of ids) if (!reading.has(id)) unseen.add(id)
      if (next === null) return unseen
      from = next
      await yieldToEventLoop()
      signal.throwIfAborted()
    }
  }

  const { reading, coverage, isTrusted } = await readWhole(suspect)
  let isExtraKnown = isTrusted
  const extra = isTrusted ? await notIn(reading) : new Set<string>()
  if (extra.size > 0) {
    const before = extra.size
    const second = await readWhole(({ items }) => {
      for (const { id } of items) extra.delete(id)
    })
    moved += before - extra.size
    isExtraKnown = second.isTrusted
  }
  if (isExtraKnown)
    for (const key of extra) report({ kind: 'extra', key, page: null, paths: [], reject: null })
  found.sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind))
  return { items: reading.items, counts, found, moved, coverage, isExtraKnown }
}
