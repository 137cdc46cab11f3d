import { parseExact } from '../json/exact.ts'
import { asJsonObject, differingFields, sameJson } from '../json/value.ts'
import { counted } from '../text.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { AddedEnds } from './refresh/ends.ts'
import type { Lease, LedgerEntry, PageChanges, Run, Store, Upsert, Walk } from './store.ts'
import type { Checkpoint, Job, Notice, Page } from './types.ts'
import type { Answer, PageResult } from './walk.ts'

export interface PageWriterOptions {
  store: Store
  lease: Lease
  run: Run
  walk: Walk
  /** See `WalkChoice.replace`. */
  replaces: readonly Pick<Walk, 'id' | 'kind'>[]
  times: Pick<PageTimes, 'ofWalk'>
}

export type PageWriter = ReturnType<typeof createPageWriter>

/** Writes the pages of a walk: changed items and the checkpoint. */
export function createPageWriter({ store, lease, run, walk, ...options }: PageWriterOptions) {
  let { newRejects } = walk
  let { rowsAdded } = lease
  let replaces = options.replaces
  let { addedBehind } = walk.checkpoint
  const ends = countAddedEnds()
  const written = { added: 0, changed: 0 }

  async function abandon(abandoned: Pick<Walk, 'id' | 'kind'>): Promise<void> {
    await store.closeWalk(lease, { walk: abandoned, run, outcome: null, removals: 'none', refresh: null })
  }

  /** Kept with the checkpoint: a walk that is killed and resumed has to know it at its end. */
  function withAddedBehind(next: Checkpoint): Checkpoint {
    return addedBehind ? { ...next, addedBehind } : next
  }

  async function handle({ page, items, newToWalk, entry, next }: Answer): Promise<PageResult> {
    const { changes } = await compareWithStore(store, lease.job, page, items)
    const at = options.times.ofWalk()
    const added = new Set(changes.upserts.filter(({ change }) => change === 'added').map(({ key }) => key.id))
    if (entry.why === 'forward') ends.note(page.number, items, added)
    else if (beginsWithAdded(entry, added)) {
      addedBehind = { at: addedBehind?.at ?? at, isInFront: addedBehind?.isInFront || entry.why === 'front' }
    }
    const answer = { walk, entry, newToWalk, next: withAddedBehind(next) }
    const committed = await store.commit(lease, { changes, run, at, answer, saved: null })
    newRejects += committed.newRejects
    rowsAdded = committed.rowsAdded
    for (const replaced of replaces) await abandon(replaced)
    replaces = []
    const result = pageResult(changes, committed.notices)
    written.added += result.added
    written.changed += result.changed
    return result
  }

  return {
    handle,
    async beginPass(next: Checkpoint): Promise<void> {
      ends.endPass()
      await store.saveCheckpoint(lease, walk, withAddedBehind(next), options.times.ofWalk())
    },
    giveUp: () => abandon(walk),
    /** Items of the walk without a usable key that are new to the mirror. */
    newRejects: () => newRejects,
    /** As of `Lease`, with the last page written. */
    rowsAdded: () => rowsAdded,
    /**
     * When a page that was asked for again first added rows in front of the list; unread rows may follow them. Epoch milliseconds; null: none
     * did.
     */
    addedBehindAt: () => (addedBehind?.isInFront ? addedBehind.at : null),
    addedEnds: () => ends.counts,
    /** By this run. */
    written: () => written,
  }
}

/** Counts new rows at both ends of the list, in its order. A walk that was resumed says nothing of the first end. */
function countAddedEnds() {
  let isLeading: boolean | null = null
  let isOver = false
  const counts: AddedEnds = { first: 0, last: 0 }
  return {
    counts,
    /** @param added The ids of the rows that the mirror did not have before. */
    note(page: number, items: readonly { id: string }[], added: ReadonlySet<string>): void {
      if (isOver) return
      isLeading ??= page === 1
      for (const { id } of items) {
        const isAdded = added.has(id)
        isLeading &&= isAdded
        if (isLeading) counts.first++
        counts.last = isAdded ? counts.last + 1 : 0
      }
    },
    /** Only the first pass counts: what it added is no longer new in the next one. */
    endPass(): void {
      isOver = true
    },
  }
}

/**
 * Whether a page that was asked for again begins with new rows: before any item that this walk has read.
 * @param added The ids of the rows that the mirror did not have before.
 */
function beginsWithAdded({ ids, positions }: LedgerEntry, added: ReadonlySet<string>): boolean {
  const first = ids.findIndex((id) => added.has(id))
  return first !== -1 && positions?.slice(0, first).includes(null) !== true
}

/** What a page changes, and what is stored of each of its items now. */
export async function compareWithStore(
  store: Pick<Store, 'lookup'>,
  job: Job,
  page: Page,
  items: readonly ListedItem[],
): Promise<{ changes: PageChanges; stored: StoredItem[] }> {
  const stored = await store.lookup(job, items)
  const upserts = changedItems(items, stored, new Set(job.collection.ignore))
  const rejects = rejectsOf(items)
  const keys = items.flatMap((listed) => ('key' in listed ? [listed.key] : []))
  return { changes: { page: page.number, items: page.items.length, keys, upserts, rejects }, stored }
}

export function pageResult(
  { page, upserts, rejects }: PageChanges,
  notices: readonly Notice[],
): Required<PageResult> {
  const added = upserts.filter(({ change }) => change === 'added').length
  return {
    added,
    changed: upserts.length - added,
    rejected: rejects.length,
    notices: [...notices, ...rejectNotice(page, rejects)],
    upserts,
  }
}

interface Reject {
  id: string
  reason: string
  text: string
}

function rejectsOf(items: readonly ListedItem[]): Reject[] {
  return items.flatMap((listed) =>
    'reject' in listed ? [{ id: listed.id, reason: listed.reject, text: listed.item.text }] : [],
  )
}

/** The log line about items without a usable key: how many, and why the first one has none. */
function rejectNotice(page: number, rejects: readonly Reject[]): Notice[] {
  const [first] = rejects
  if (!first) return []
  const many = `${counted(rejects.length, 'item')} of page ${page} ${rejects.length === 1 ? 'has' : 'have'} no usable key`
  return [
    {
      level: 'warn',
      message: `${many} (${first.reason}) and ${rejects.length === 1 ? 'is' : 'are'} kept only in sync_rejects`,
    },
  ]
}

export type PageTimes = ReturnType<typeof createPageTimes>

/** The times that the pages of a job are written with, in epoch milliseconds. They never go back, whatever the clock does. */
export function createPageTimes(
  { lastPageAt, refresh }: Pick<Lease, 'lastPageAt' | 'refresh'>,
  now: () => number,
) {
  let last = lastPageAt
  // What is written after a finished refresh is new to the next one, so no page may carry an earlier time.
  let least = Math.max(lastPageAt, (refresh?.settledAt ?? 0) + 1)
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

/**
 * Returns the items of a page to write: new ones, and those with another value.
 * @param stored One entry for each item.
 * @param ignore Dotted paths whose changes do not count.
 */
function changedItems(
  items: readonly ListedItem[],
  stored: readonly StoredItem[],
  ignore: ReadonlySet<string>,
): Upsert[] {
  return items.flatMap((listed, index): Upsert[] => {
    const known = stored[index]
    if (!('key' in listed) || known === undefined || known.state === 'same') return []
    const { key, item } = listed
    const value = asJsonObject(item.value)
    const upsert = { key, text: item.text, value }
    if (known.state === 'absent') return [{ ...upsert, change: 'added' }]
    const before = parseExact(known.text)
    if (sameJson(before, value, ignore)) return []
    return [{ ...upsert, change: 'changed', fields: differingFields(before, value, ignore) }]
  })
}
