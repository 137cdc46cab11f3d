import { identifyItems, type StoredItem } from '../items.ts'
import { compareWithStore, type PageTimes, pageResult } from '../page-writer.ts'
import type { Lease, PageChanges, Run, Store } from '../store.ts'
import type { Notice, Observe, Page, PageSource, RequestEvent, Urgency } from '../types.ts'
import type { PageResult } from '../walk.ts'
import type { RefreshItem } from './ends.ts'
import type { SavedRefresh } from './state.ts'

export type RefreshPageEvent = RequestEvent | { kind: 'notices'; page: number; notices: readonly Notice[] }

/** What a refresh reads and writes with. */
export interface RefreshTools {
  store: Store
  lease: Lease
  run: Run
  source: PageSource
  times: Pick<PageTimes, 'ofRefresh'>
  observe: Observe<RefreshPageEvent>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/** A page of a refresh, as it is once it is written. */
export interface RefreshedPage {
  page: Page
  /** When its rows were written, epoch milliseconds. */
  at: number
  items: readonly RefreshItem<string>[]
  /** As of `Lease`, with this page. */
  rowsAdded: number
  written: Written
}

/** How many rows a page added and changed. */
export type Written = Pick<Required<PageResult>, 'added' | 'changed'>

/**
 * Reads one page and writes it.
 * @param save Returns what is saved with the page, if that is known before the refresh ends.
 */
export async function refreshPage(
  { store, lease, run, source, times, observe, yieldToEventLoop, signal }: RefreshTools,
  number: number,
  urgency: Urgency,
  save: (written: Written) => SavedRefresh | null = () => null,
): Promise<RefreshedPage> {
  const { job } = lease
  const page = await source.fetchPage(number, observe, signal, urgency)
  const listed = identifyItems(job, page)
  const { changes, stored } = await compareWithStore(store, job, page, listed)
  const at = times.ofRefresh()
  const written = pageResult(changes, [])
  const committed = await store.commit(lease, {
    changes,
    run,
    at,
    answer: null,
    saved: save(written),
  })
  await yieldToEventLoop()
  const ids = writtenIds(changes)
  const items = listed.map((item, index) => ({
    id: item.id,
    seen: seenOf(stored[index], ids.get(item.id), at),
    isNewReject: 'reject' in item && stored[index]?.state === 'absent',
  }))
  // The same reject comes with every refresh; only the first one reports it.
  const isRejectNew = items.some(({ isNewReject }) => isNewReject)
  const told = isRejectNew ? pageResult(changes, committed.notices).notices : committed.notices
  observe({ kind: 'notices', page: number, notices: told })
  return { page, at, items, rowsAdded: committed.rowsAdded, written }
}

type Change = PageChanges['upserts'][number]['change']

function writtenIds({ upserts }: PageChanges): Map<string, Change> {
  return new Map(upserts.map(({ key, change }) => [key.id, change]))
}

/** The row of an item after the page is written at this time. */
function seenOf(
  stored: StoredItem | undefined,
  change: Change | undefined,
  at: number,
): RefreshItem<string>['seen'] {
  if (change === 'added') return { firstAt: at, changedAt: at }
  if (stored === undefined || stored.state === 'absent' || stored.times === null) return null
  return change === 'changed' ? { ...stored.times, changedAt: at } : stored.times
}
