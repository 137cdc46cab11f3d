import { identifyItems } from '../items.ts'
import { compareWithStore, type PageTimes, pageResult } from '../page-writer.ts'
import type { Lease, Run, Store } from '../store.ts'
import type { Notice, Observe, PageSource, RequestEvent, Urgency } from '../types.ts'
import type { RefreshItem, WrittenAnswer } from './ends.ts'

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

/** A page of a refresh as it is once it is written; how many rows it added and changed; and `rowsAdded` of the lease with it. */
export interface RefreshedPage extends Omit<WrittenAnswer<string>, 'found'> {
  added: number
  changed: number
  rowsAdded: number
}

/** Reads one page and writes it. */
export async function refreshPage(
  tools: RefreshTools,
  number: number,
  urgency: Urgency,
): Promise<RefreshedPage> {
  const { store, lease, run, source, times, observe, yieldToEventLoop, signal } = tools
  const { job } = lease
  const page = await source.fetchPage(number, observe, signal, urgency)
  const listed = identifyItems(job, page)
  const { changes, stored } = await compareWithStore(store, job, page, listed)
  const at = times.ofRefresh()
  const committed = await store.commit(lease, { changes, run, at, answer: null })
  await yieldToEventLoop()
  const written = new Map(changes.upserts.map(({ key, change }) => [key.id, change]))
  const items = listed.map((item, index): RefreshItem<string> => {
    const known = stored[index]
    const change = written.get(item.id)
    const before = known === undefined || known.state === 'absent' ? null : known.times
    const seen = before && (change === 'changed' ? { ...before, changedAt: at } : before)
    const isNewReject = 'reject' in item && known?.state === 'absent'
    return { id: item.id, seen: change === 'added' ? { firstAt: at, changedAt: at } : seen, isNewReject }
  })
  const { added, changed, notices } = pageResult(changes, committed.notices)
  // The same reject comes with every refresh; only the first one reports it.
  const isRejectNew = items.some((item) => item.isNewReject)
  observe({ kind: 'notices', page: number, notices: isRejectNew ? notices : committed.notices })
  const { total, next, lastPage } = page
  return { at, items, total, next, lastPage, added, changed, rowsAdded: committed.rowsAdded }
}
