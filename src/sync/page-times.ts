import type { Lease } from './store.ts'

/** The times that the pages of a job are written with, in epoch milliseconds. They never go back, whatever the clock does. */
export interface PageTimes {
  /** For a page of a walk. */
  ofWalk(): number
  /** For a page of a refresh: later than any other page, since refreshes tell pages apart by their times. */
  ofRefresh(): number
}

export function createPageTimes(
  { lastPageAt, refresh }: Pick<Lease, 'lastPageAt' | 'refresh'>,
  now: () => number,
): PageTimes {
  let last = lastPageAt
  // What is written after a finished refresh is news to the next one.
  let least = Math.max(lastPageAt, (refresh?.settledAt ?? 0) + 1)
  return {
    ofWalk() {
      last = Math.max(now(), least, last)
      return last
    },
    ofRefresh() {
      last = Math.max(now(), least, last + 1)
      least = last + 1
      return last
    },
  }
}
