import { parseExact } from '../json/exact.ts'
import { asJsonObject, differingFields, sameJson } from '../json/value.ts'
import { counted } from '../text.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { CommitResult, Lease, PageCommit, Run, Store, Upsert } from './store.ts'
import type { Notice, Page } from './types.ts'
import type { PageResult } from './walk.ts'

/** A page that was read, and what `PageCommit` says of it. */
interface PageToWrite extends Pick<PageCommit, 'at' | 'answer'> {
  page: Page
  items: readonly ListedItem[]
}

/** What writing a page came to. `stored`: its items as they were before. */
export interface WrittenPage extends PageResult, Omit<CommitResult, 'notices'> {
  upserts: readonly Upsert[]
  stored: readonly StoredItem[]
}

/** Writes a page: the items that are new or have another value, and the page's line in the ledger. Counts on in `lease` and in its walk. */
export async function writePage(
  store: Pick<Store, 'lookup' | 'commit'>,
  lease: Lease,
  run: Run,
  { page, items, at, answer }: PageToWrite,
): Promise<WrittenPage> {
  const stored = await store.lookup(lease.job, items)
  const ignore = new Set(lease.job.collection.ignore)
  const upserts = items.flatMap((listed, index) => changeOf(listed, stored[index], ignore) ?? [])
  const rejects = items.flatMap((listed) =>
    'reject' in listed ? [{ id: listed.id, reason: listed.reject, text: listed.item.text }] : [],
  )
  const keys = items.flatMap((listed) => ('key' in listed ? [listed.key] : []))
  const changes = { page: page.number, items: page.items.length, keys, upserts, rejects }
  const committed = await store.commit(lease, { changes, run, at, answer })
  lease.rowsAdded = committed.rowsAdded
  if (answer) answer.walk.newRejects += committed.newRejects
  const added = upserts.filter(({ change }) => change === 'added').length
  const notices = [...committed.notices, ...rejectNotices(changes)]
  return { ...committed, upserts, stored, added, changed: upserts.length - added, notices }
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

function rejectNotices({ page, rejects }: PageCommit['changes']): Notice[] {
  const [first] = rejects
  if (!first) return []
  const message =
    `${counted(rejects.length, 'item')} of page ${page} with no usable key (${first.reason}), ` +
    'kept only in sync_rejects'
  return [{ event: 'items_rejected', message }]
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
