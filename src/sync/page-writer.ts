import { parseExact } from '../json/exact.ts'
import { asJsonObject, differingFields, sameJson } from '../json/value.ts'
import { counted } from '../text.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { Lease, PageChanges, Run, Store, Upsert, Walk } from './store.ts'
import type { Job, Notice, Page } from './types.ts'
import type { PageResult, ReadPage } from './walk.ts'

interface PageWriterOptions {
  store: Pick<Store, 'lookup' | 'commit'>
  lease: Lease
  run: Run
  walk: Walk
}

/** Writes the pages of a walk: changed items, and the page's line in the ledger. */
export class PageWriter {
  /** Items of the walk without a usable key that are new to the mirror. */
  newRejects: number
  /** As of `Lease`, with the last page written. */
  rowsAdded: number
  #options: PageWriterOptions

  constructor(options: PageWriterOptions) {
    this.#options = options
    this.newRejects = options.walk.newRejects
    this.rowsAdded = options.lease.rowsAdded
  }

  async write({ page, items, newToWalk, entry, nextPage }: ReadPage): Promise<PageResult> {
    const { store, lease, run, walk } = this.#options
    const { changes } = await compareWithStore(store, lease.job, page, items)
    const answer = { walk, entry, newToWalk: newToWalk.size, nextPage }
    const commit = { changes, run, at: entry.at, answer }
    const { newRejects, rowsAdded, notices } = await store.commit(lease, commit)
    const result = pageResult(changes, notices)
    this.newRejects += newRejects
    this.rowsAdded = rowsAdded
    return result
  }
}

/** What a page changes, and what is stored of each of its items now. */
export async function compareWithStore(
  store: Pick<Store, 'lookup'>,
  job: Job,
  page: Page,
  items: readonly ListedItem[],
): Promise<{ changes: PageChanges; stored: StoredItem[] }> {
  const stored = await store.lookup(job, items)
  const ignore = new Set(job.collection.ignore)
  const upserts = items.flatMap((listed, index) => changeOf(listed, stored[index], ignore) ?? [])
  const rejects = items.flatMap((listed) =>
    'reject' in listed ? [{ id: listed.id, reason: listed.reject, text: listed.item.text }] : [],
  )
  const keys = items.flatMap((listed) => ('key' in listed ? [listed.key] : []))
  return { changes: { page: page.number, items: page.items.length, keys, upserts, rejects }, stored }
}

/** What to write of an item: one that is new, or has another value. `ignore`: dotted paths whose changes do not count. */
function changeOf(
  listed: ListedItem,
  stored: StoredItem | undefined,
  ignore: ReadonlySet<string>,
): Upsert | null {
  if (!('key' in listed) || stored === undefined || stored.state === 'same') return null
  const { key, item } = listed
  const value = asJsonObject(item.value)
  const upsert = { key, text: item.text, value }
  if (stored.state === 'absent') return { ...upsert, change: 'added' }
  const before = parseExact(stored.text)
  if (sameJson(before, value, ignore)) return null
  return { ...upsert, change: 'changed', fields: [...differingFields(before, value, ignore)] }
}

export function pageResult({ page, upserts, rejects }: PageChanges, notices: readonly Notice[]): PageResult {
  const added = upserts.filter(({ change }) => change === 'added').length
  const result = { added, changed: upserts.length - added }
  const [first] = rejects
  if (!first) return { ...result, notices }
  const message =
    `${counted(rejects.length, 'item')} of page ${page} with no usable key (${first.reason}), ` +
    'kept only in sync_rejects'
  return { ...result, notices: [...notices, { event: 'items_rejected', message }] }
}

export type PageTimes = ReturnType<typeof createPageTimes>

/** The times that the pages of a job are written with, in epoch milliseconds. They never go back, whatever the clock does. */
export function createPageTimes({ lastPageAt }: Pick<Lease, 'lastPageAt'>, now: () => number, settledAt = 0) {
  let last = lastPageAt
  // What is written after a finished refresh is new to the next one, so no page may carry an earlier time.
  let least = Math.max(lastPageAt, settledAt + 1)
  return {
    /** For a page of a walk. */
    ofWalk(): number {
      last = Math.max(now(), least, last)
      return last
    },
    /** For a page of a refresh: later than any other page, since refreshes tell pages apart by their times. */
    ofRefresh(): number {
      last = Math.max(now(), least, last + 1)
      least = last + 1
      return last
    },
  }
}
