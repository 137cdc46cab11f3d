import { JobError } from '../../errors.ts'
import { counted, grouped } from '../../text.ts'
import type { Page } from '../types.ts'
import type { CoverageState, WalkRules } from './state.ts'

/** A list that grew beyond this never ends. Small lists may grow a lot while they are read. */
const GROWTH = 2
const GROWTH_PAGES = 1000

/** This many pages in a row without a new item are a circle. */
const CIRCLE_PAGES = 1000

/**
 * Pages without news until a list that names its last page is endless, if the latest one is empty or beyond that
 * page. Rows deleted between the server's two queries leave one page empty, a late replica a few. An API that counts
 * items but hides them leaves any number: `total: ignore` allows these.
 */
const FALSE_PAGES = 10

/** The same for empty pages of a list without a length: an API that filters after paging leaves some. */
const EMPTY_PAGES = 100

/** Whether the list has become shorter than this page: Laravel then answers with 200, no items and no next page. */
export function isBeyondEnd(page: Page): boolean {
  return (
    page.items.length === 0 && page.next === null && page.lastPage !== null && page.number > page.lastPage
  )
}

/** Throws BAD_RESPONSE on an endless list. */
export function assertEnds(
  { total }: WalkRules,
  { firstLastPage, pagesWithoutNews }: CoverageState,
  page: Page,
): void {
  if (page.next === null) return
  if (firstLastPage !== null && page.number > firstLastPage * GROWTH + GROWTH_PAGES) {
    const was = counted(firstLastPage, 'page')
    throw endless(`it had ${was} at first, and page ${grouped(page.number)} names a next one`)
  }
  if (pagesWithoutNews >= CIRCLE_PAGES)
    throw endless(`the last ${counted(CIRCLE_PAGES, 'page')} brought nothing new`)
  const isEmpty = page.items.length === 0 && total === 'check'
  if (pagesWithoutNews >= EMPTY_PAGES && isEmpty && page.lastPage === null)
    throw endless(
      `the last ${counted(EMPTY_PAGES, 'page')} brought nothing new, and page ${grouped(page.number)} has no items and names a ` +
        'next one; if the API leaves so many pages empty, set total: ignore',
    )
  if (pagesWithoutNews >= FALSE_PAGES && page.lastPage !== null && isFalse(total, page, page.lastPage)) {
    throw endless(
      `page ${grouped(page.number)} of ${grouped(page.lastPage)} names a next one, and the last ${counted(FALSE_PAGES, 'page')} ` +
        `brought nothing new${total === 'check' ? '; if the API counts items that it does not list, set total: ignore' : ''}`,
    )
  }
}

function isFalse(total: WalkRules['total'], { number, items }: Page, lastPage: number): boolean {
  return number > lastPage || (items.length === 0 && total === 'check')
}

function endless(why: string): JobError {
  return new JobError('BAD_RESPONSE', `the list does not end: ${why}`)
}
