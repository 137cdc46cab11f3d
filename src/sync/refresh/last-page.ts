import type { ErrorCode, JobError } from '../../errors.ts'
import type { RefreshAnswer } from './answer.ts'
import type { EndReading } from './end-reading.ts'
import { NO_NEWS } from './news.ts'

/** An answer that names no last page leads one page further; so many of them find no end. */
const MOST_ANSWERS = 40

/**
 * Looks for the last page from where it was before. The page is asked again when its turn comes: an insertion hides a
 * deletion in the total, and what its first answer held may have moved since.
 * @returns The reading with the page to ask, or with this answer as the first that counts, or unsettled.
 */
export function seekLastPage(reading: EndReading, answer: RefreshAnswer): EndReading {
  if (reading.answers >= MOST_ANSWERS) return { ...reading, outcome: 'unsettled' }
  const { page, lastPage } = answer
  if (isPastEnd(answer))
    return {
      ...reading,
      top: null,
      isPastEnd: true,
      ask: Math.max(1, Math.min(page - 1, lastPage ?? page - 1)),
      news: { ...NO_NEWS, added: reading.news.added, leading: reading.news.leading },
    }
  const ask = laterPage(reading, answer)
  if (ask !== null) return { ...reading, ask }
  return {
    ...reading,
    top: reading.answers,
    topTotal: reading.total,
    leastTotal: reading.total,
    lastPage: lastPage ?? page,
  }
}

const PAST_THE_END: readonly ErrorCode[] = ['ORGANIZATION_NOT_FOUND', 'BAD_REQUEST', 'UNEXPECTED_STATUS']

/**
 * An API may refuse a page past the end, as with 404, and the list may have become shorter: the search then begins at page 1,
 * which names the last one.
 * @returns Null where the error has another cause, since page 1 is refused, too, or pages were answered before.
 */
export function seekFromFirst(reading: EndReading, error: JobError): EndReading | null {
  const isSearch = reading.end === 'last' && reading.answers === 0 && (reading.ask ?? 1) > 1
  return isSearch && PAST_THE_END.includes(error.code) ? { ...reading, ask: 1 } : null
}

/**
 * A list that grows would be chased for ever: the last page that the first answer named is taken for it. After a page past the
 * end each answer is heeded, since that one may have been empty by mistake.
 */
function laterPage(reading: EndReading, { page, next, lastPage }: RefreshAnswer): number | null {
  const { answers, isPastEnd: wasPastEnd } = reading
  if (lastPage === null) return wasPastEnd ? null : next
  return (answers === 1 || wasPastEnd) && lastPage > page ? lastPage : null
}

/** Laravel answers a page past the end with 200, no items and no next page. */
export function isPastEnd({ rows, page, next, lastPage }: RefreshAnswer): boolean {
  return rows.length === 0 && page > 1 && next === null && (lastPage === null || page > lastPage)
}
