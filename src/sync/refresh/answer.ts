/** An end of a list: page 1 is at `first`. */
export type End = 'first' | 'last'

/** An item of an answer, with its row as it stands once the answer is written. */
export interface RefreshRow {
  /** Epoch milliseconds; null where the item has no usable key, and so no row. */
  seen: { firstAt: number; changedAt: number } | null
  /** Whether it is an item without a usable key that the mirror had not met before: the total counts it, too. */
  isNewReject?: boolean
  /** The number of the answer, in this reading of one end, that held the key before; null where this one is the first. */
  metIn: number | null
}

/** One answer of a refresh, checked, and matched with the rows of the job. */
export interface RefreshAnswer {
  page: number
  /** The time that its rows are written with, epoch milliseconds. Later than that of any answer of the job before it. */
  at: number
  total: number | null
  /** The page that the answer names as the next one; null at the end of the list. */
  next: number | null
  lastPage: number | null
  /** One entry per item, in the order of the list. */
  rows: readonly RefreshRow[]
  /** Rows of the job that were first seen after the state's `settledAt`, wherever they were found, this answer's included. */
  found: number
}

/** What the decisions have to know of a list that does not change during a refresh. */
export interface RefreshRules {
  total: 'check' | 'ignore'
  /** The end where new items appear, as configured; `auto`: it is learned. */
  newest: End | 'auto'
}
