import { JobError } from '../../errors.ts'
import { counted, grouped } from '../../text.ts'
import type { Page } from '../types.ts'
import type { CoverageState, WalkRules } from './state.ts'

/** A list this much longer than it was at first does not end; small lists may grow a good deal while they are read. */
const GROWTH = 2
const GROWTH_PAGES = 1000

/** So many pages in a row with nothing new on them are a circle. */
const CIRCLE_PAGES = 1000

/**
 * So many are one too in a list that says how long it is, where the last of them has no items, or lies beyond the list's
 * own last page. A paginator fills its pages: rows that are deleted between its two queries leave one page empty, a late
 * replica a few. An API that hides items from its pages leaves any number, but counts them: `total: ignore` allows these.
 */
const FALSE_PAGES = 10

/** Of a list that says nothing of its length, empty pages: an API that filters after it has cut its pages leaves some. */
const EMPTY_PAGES = 100

/** Laravel answers a page past the end with 200, no items and no next page: not an end, but a list that became shorter. */
export function isBeyondEnd(page: Page): boolean {
  return (
    page.items.length === 0 && page.next === null && page.lastPage !== null && page.number > page.lastPage
  )
}

/** Throws on a list without end. */
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
