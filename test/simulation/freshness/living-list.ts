import type { Random } from '../random.ts'

export const ORDERS = ['first', 'last', 'by update', 'random'] as const

/** Where new items appear; `by update` puts changed ones there, too: at the end of the list. */
export type Order = (typeof ORDERS)[number]

/** Which items go; in a list without an order it is any. */
export type Removals = 'oldest' | 'newest'

export interface ServedPage {
  ids: readonly number[]
  total: number
  lastPage: number
}

export interface LivingList {
  add(id: number): void
  /** Nothing stands elsewhere afterwards, unless the list is sorted by update. */
  change(id: number): void
  /** Takes an item away; none of an empty list. */
  remove(): number | null
  pageAt(page: number): ServedPage
}

const PER_PAGE = 25

/** Removed items are cut off so many at a time, since each cut moves all the others. */
const CUT = 4096

/** Of so many items one goes, where the newest ones go. */
const NEWEST = 100

export function createLivingList(order: Order, removals: Removals, random: Random): LivingList {
  let ids: number[] = []
  let head = 0

  function remove(): number | null {
    if (head === ids.length) return null
    if (order === 'random') return take(0)
    if (removals === 'newest') return take(Math.max(head, ids.length - NEWEST))
    const oldest = ids[head++] ?? null
    if (head >= CUT) {
      ids = ids.slice(head)
      head = 0
    }
    return oldest
  }

  function take(from: number): number | null {
    return ids.splice(random.whole(from, ids.length - 1), 1)[0] ?? null
  }

  function pageAt(page: number): ServedPage {
    const total = ids.length - head
    const start = (page - 1) * PER_PAGE
    const end = Math.min(start + PER_PAGE, total)
    const served =
      order === 'first' ? fromEnd(start, end) : ids.slice(head + start, head + Math.max(start, end))
    return { ids: served, total, lastPage: Math.max(1, Math.ceil(total / PER_PAGE)) }
  }

  function fromEnd(start: number, end: number): number[] {
    return end <= start ? [] : ids.slice(ids.length - end, ids.length - start).toReversed()
  }

  return {
    remove,
    pageAt,
    add(id) {
      if (order === 'random') ids.splice(random.whole(0, ids.length), 0, id)
      else ids.push(id)
    },
    change(id) {
      if (order !== 'by update') return
      ids.splice(ids.lastIndexOf(id), 1)
      ids.push(id)
    },
  }
}
