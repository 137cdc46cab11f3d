import type { Random } from '../../simulation/random.ts'
import { createSequence } from './sequence.ts'

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

/** Of so many items one goes, where the newest ones go. */
const NEWEST = 100

export function createLivingList(order: Order, removals: Removals, random: Random): LivingList {
  const ids = createSequence()

  function remove(): number | null {
    const length = ids.length()
    if (length === 0) return null
    if (order === 'random') return ids.take(random.whole(0, length - 1))
    if (removals === 'newest') return ids.take(random.whole(Math.max(0, length - NEWEST), length - 1))
    return ids.take(0)
  }

  function pageAt(page: number): ServedPage {
    const total = ids.length()
    const start = (page - 1) * PER_PAGE
    const end = Math.min(start + PER_PAGE, total)
    const lastPage = Math.max(1, Math.ceil(total / PER_PAGE))
    if (end <= start) return { ids: [], total, lastPage }
    const served =
      order === 'first' ? ids.slice(total - end, total - start).toReversed() : ids.slice(start, end)
    return { ids: served, total, lastPage }
  }

  return {
    remove,
    pageAt,
    add(id) {
      if (order === 'random') ids.insert(random.whole(0, ids.length()), id)
      else ids.push(id)
    },
    change(id) {
      if (order !== 'by update') return
      ids.drop(id)
      ids.push(id)
    },
  }
}
