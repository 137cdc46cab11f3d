import { JobError } from '../../errors.ts'
import { counted, grouped } from '../../text.ts'
import type { Page } from '../types.ts'
import type { Account } from './account.ts'

/** A list this much longer than it was at first does not end; small lists may grow a good deal while they are read. */
const GROWTH = 2
const GROWTH_PAGES = 1000

/** So many pages in a row with nothing new on them, in a list that does not say how long it is, are a circle. */
const STALE_PAGES = 1000

/** Laravel answers a page past the end with 200, no items and no next page: not an end, but a list that became shorter. */
export function isBeyondEnd(page: Page): boolean {
  return (
    page.items.length === 0 && page.next === null && page.lastPage !== null && page.number > page.lastPage
  )
}

/** Throws on a list without end. */
export function assertEnds({ firstLastPage, stale }: Account, page: Page): void {
  if (page.next === null) return
  if (firstLastPage !== null && page.number > firstLastPage * GROWTH + GROWTH_PAGES) {
    const was = counted(firstLastPage, 'page')
    throw new JobError(
      'BAD_RESPONSE',
      `the list does not end: it had ${was} at first, and page ${grouped(page.number)} names a next one`,
    )
  }
  if (stale >= STALE_PAGES) {
    throw new JobError(
      'BAD_RESPONSE',
      `the list does not end: the last ${counted(STALE_PAGES, 'page')} brought nothing new`,
    )
  }
}
