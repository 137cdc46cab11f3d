import type { ErrorCode, JobError } from '../../errors.ts'
import { type EndReading, noteAnswer, type ReadingRules, type RefreshAnswer } from './end-reading.ts'
import { countNews, NO_NEWS, noteAdded, ofWholeList } from './news.ts'
import {
  askAgain,
  compareAgain,
  continueStepOutward,
  hasSlid,
  inwards,
  stepOutward,
  unprovenPages,
} from './step-outward.ts'

/** This many rows in a row that are old news settle a reading. More than one, since items that come a little late are among them. */
const OLD_NEWS = 25

/** Without a total no answer shows that an item slid past, so the reading goes further. */
const OLD_NEWS_UNCOUNTED = 50

/** This many rows in a row without a new one are a bulk update, or a field that changes in every answer. */
const CEILING = 1000

/** What an answer means for a reading from one end, and which page to ask next. */
export function readInward(before: EndReading, rules: ReadingRules, answer: RefreshAnswer): EndReading {
  const noted = noteAnswer(before, rules, answer)
  if (before.stepOutward) {
    const reading = continueStepOutward(before, noted, before.stepOutward, rules, answer)
    return reading.ask === null
      ? goOn(reading, rules, answer, inwards(reading, before.stepOutward.from))
      : reading
  }
  if (before.askedAgain > 0) return compareAgain(noted, answer)
  const reading = noted.top === null || isCutShort(noted, answer) ? findTop(noted, answer) : noted
  if (reading.top === null) return { ...reading, news: noteAdded(reading.news, answer.rows, answer.at) }
  return readPage(before, reading, reading.top, rules, answer)
}

/** Whether the page is past the end by now, or empty by mistake: a reading from `last` then looks for the end again. */
function isCutShort({ end }: EndReading, answer: RefreshAnswer): boolean {
  return end === 'last' && isPastEnd(answer)
}

function findTop(reading: EndReading, answer: RefreshAnswer): EndReading {
  if (reading.end === 'last') return seekLastPage(reading, answer)
  return { ...reading, top: reading.answers, topTotal: reading.total, leastTotal: reading.total }
}

function readPage(
  before: EndReading,
  noted: EndReading,
  top: number,
  rules: ReadingRules,
  answer: RefreshAnswer,
): EndReading {
  const judging = { settledAt: rules.settledAt, at: answer.at, top }
  const rows = noted.end === 'first' ? answer.rows : answer.rows.toReversed()
  const unproven = unprovenPages(before, noted)
  const reading = { ...noted, unproven, news: countNews(noted.news, rows, judging) }
  if (hasSlid(before, reading, answer)) return stepOutward(reading, answer)
  return goOn(reading, rules, answer, nextInward(reading, answer))
}

/** The next page inwards; null after the list's other end. */
function nextInward(reading: EndReading, { page, next }: RefreshAnswer): number | null {
  return reading.end === 'first' && next === null ? null : inwards(reading, page)
}

/** Ends the reading if enough known rows were met, or too many changed ones came; else asks for the next page. */
function goOn(
  reading: EndReading,
  { total }: ReadingRules,
  answer: RefreshAnswer,
  ask: number | null,
): EndReading {
  const { oldInRow, withoutNew } = reading.news
  if (oldInRow >= (total === 'ignore' ? OLD_NEWS_UNCOUNTED : OLD_NEWS)) return askAgain(reading)
  if (withoutNew >= CEILING) return { ...reading, outcome: 'hole' }
  if (ask !== null) return { ...reading, ask }
  // An empty answer may be a mistake of the API: an empty list is empty twice.
  if (reading.news.items === 0 && reading.answers === 1) return { ...reading, ask: answer.page, top: null }
  if (!isWhole(reading, answer)) return { ...reading, outcome: 'unsettled' }
  return askAgain({ ...reading, news: ofWholeList(reading.news) })
}

/**
 * Whether a list that was read to its other end was all of it: it must not be shorter than it says, or empty. Without a total, its
 * last answer must not be empty.
 */
function isWhole({ news, leastTotal }: EndReading, { rows }: RefreshAnswer): boolean {
  return leastTotal === null ? rows.length > 0 : news.items > 0 && news.items >= leastTotal
}

/** An answer that names no last page leads one page further; after this many the search gives up. */
const MOST_ANSWERS = 40

/**
 * Looks for the last page from where it was before. A page that this search passes is asked for again when its turn comes: its items may have
 * moved since, and an insertion hides a deletion in the total.
 * @returns The reading with the page to ask, or with this answer as the first that counts, or unsettled.
 */
function seekLastPage(reading: EndReading, answer: RefreshAnswer): EndReading {
  if (reading.answers >= MOST_ANSWERS) return { ...reading, outcome: 'unsettled' }
  const { page, lastPage } = answer
  if (isPastEnd(answer))
    return {
      ...reading,
      top: null,
      metPastEnd: true,
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
 * The later page to ask for; null: this is the last one. A list that grows would be followed for ever, so only the first answer may name a later
 * page. After a page past the end each answer may: that page may have been empty by mistake.
 */
function laterPage(reading: EndReading, { page, next, lastPage }: RefreshAnswer): number | null {
  const { answers, metPastEnd } = reading
  if (lastPage === null) return metPastEnd ? null : next
  return (answers === 1 || metPastEnd) && lastPage > page ? lastPage : null
}

/** Laravel answers a page past the end with 200, no items and no next page. */
function isPastEnd({ rows, page, next, lastPage }: RefreshAnswer): boolean {
  return rows.length === 0 && page > 1 && next === null && (lastPage === null || page > lastPage)
}
