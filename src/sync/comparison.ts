import type { ListedItem } from './items.ts'
import type { WalkKeeper } from './mirror.ts'
import type { SeenItems } from './seen-items.ts'
import type { Checkpoint, Coverage, Walk } from './types.ts'

/** An item in which a list and the mirror are apart. */
export interface Difference {
  /** `missing`: listed, and not in the mirror; `extra`: in the mirror, and not listed; `different`: not of the same value. */
  kind: 'missing' | 'extra' | 'different'
  /** A JSON list where the key has several fields; null for an item without a usable key. */
  key: string | null
  /** Where it stood when the list was read; null where it stood nowhere. */
  page: number | null
  /** The dotted paths that differ, the first of them. */
  paths: readonly string[]
  hasMorePaths: boolean
  /** Why the item has no usable key. */
  reject: string | null
}

/** What a comparison has come to. */
export interface Differences {
  /** Distinct items that the list had. */
  items: number
  counts: Record<Difference['kind'], number>
  /** The first of each kind. */
  listed: Difference[]
  /** Items that were seen to change, come or go while the list was read: no differences. */
  moved: number
  coverage: Coverage | null
  /** False where the reading cannot tell what the list does not hold. */
  isExtraTold: boolean
  /** Whether the mirror has nothing of this list, and never had; `items` is what the list's own total says then. */
  isNeverSynced: boolean
}

/** A list and the mirror, held against each other: a keeper of walks that writes nothing into the mirror. */
export interface Comparison extends WalkKeeper {
  isNeverSynced(): Promise<boolean>
  /** Begins a reading of the whole list. In the first one its items are held against the mirror's; later ones clear what they see of suspicion. */
  beginReading(first: Checkpoint, seen: Pick<SeenItems, 'has'>): Promise<Walk>
  /** Of the last reading: items without a usable key that the mirror does not know. */
  newRejects(): number
  /** Judges the suspects among the items of a page that was asked for again. */
  lookAgain(page: number, items: readonly ListedItem[]): Promise<void>
  /** The first page behind this one on which a suspect stood that is not judged yet. */
  nextSuspect(afterPage: number): Promise<number | null>
  /** Suspects every row that the reading has not seen; returns how many. */
  suspectUnseen(): Promise<number>
  /** Whoever is still suspected of being extra is so. */
  confirmExtra(): Promise<void>
  differences(): Promise<Pick<Differences, 'counts' | 'listed' | 'moved'>>
  close(): Promise<void>
}
