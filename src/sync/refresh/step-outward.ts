import {
  type EndReading,
  type ReadingRules,
  type RefreshAnswer,
  type RefreshRow,
  type StepOutward,
  totalRise,
} from './end-reading.ts'
import { countSlid, isMet, noteAdded } from './news.ts'

/** A list that moves between every two answers would be followed for ever. After this many doubtful answers the reading only goes on inwards, and proves nothing. */
const MOST_DOUBTFUL = 8

/** Whether the reading has given up stepping outward, although there may be a gap behind it. */
function hasGivenUp({ doubtful }: EndReading): boolean {
  return doubtful.length >= MOST_DOUBTFUL
}

/**
 * Whether an item may have slid past the reading, onto pages already read, because no item came twice. Read from `first` inwards, that happens
 * after a deletion on those pages: the total fell. Read from `last` inwards, it happens after an insertion further inside: the total rises as
 * if items had come at the end. Once old news is met, it no longer matters.
 */
export function hasSlid(
  before: EndReading,
  reading: EndReading,
  { page, next, rows }: RefreshAnswer,
): boolean {
  const rise = totalRise(before, reading)
  const mayBeNew = before.top === null ? next !== null : before.news.oldInRow === 0
  const isBehind = reading.end === 'first' ? page > 1 && rise < 0 : mayBeNew && rise > 0
  return isBehind && !hasGivenUp(reading) && !isJoined(reading, rows, reading.answers)
}

export function stepOutward(reading: EndReading, { page, at }: RefreshAnswer): EndReading {
  const { answers, doubtful, end, outwardsAt } = reading
  return {
    ...reading,
    outwardsAt: end === 'last' ? (outwardsAt ?? at) : null,
    ask: outward(reading, page),
    stepOutward: { from: page, answer: answers, moved: false },
    doubtful: [...doubtful, answers],
  }
}

/**
 * An answer on the way outward; it ends at a page that holds an item that was read before it began.
 * @returns The reading with the page to ask, or with none where it reads on after the page where it began.
 */
export function continueStepOutward(
  before: EndReading,
  noted: EndReading,
  step: StepOutward,
  rules: ReadingRules,
  answer: RefreshAnswer,
): EndReading {
  const { page, rows, at, next } = answer
  const moved = step.moved || isMoved(before, noted, answer)
  const { settledAt } = rules
  const reading = { ...noted, news: countSlid(noted.news, rows, { settledAt, at, top: noted.top ?? 1 }) }
  const { doubtful, answers, news, end } = reading
  // The page where the reading began is far enough: a list that grows would be followed for ever.
  const isAtEnd = end === 'first' ? page === 1 : next === null || step.answer === noted.top
  if (!isAtEnd && !isJoined(noted, rows, step.answer)) {
    const further = { ...reading, doubtful: [...doubtful, answers] }
    if (hasGivenUp(further)) return { ...further, stepOutward: null }
    return { ...further, ask: outward(reading, page), stepOutward: { ...step, moved } }
  }
  if (!moved && end === 'last')
    return { ...reading, stepOutward: null, doubtful: isDeepest(reading, step.from) ? [] : doubtful }
  // Meanwhile items may have moved between the pages after this one, so these are read again. From `first` inwards that is always done:
  // an insertion in front hides a deletion further inside, since the total stays and the row that was pulled forward is pushed back.
  return { ...reading, ask: inwards(reading, page), stepOutward: null, news: { ...news, oldInRow: 0 } }
}

/** The next page towards the end that the reading began at. */
function outward({ end }: EndReading, page: number): number {
  return end === 'first' ? page - 1 : page + 1
}

/** The next page after this one; null after page 1. */
export function inwards({ end }: EndReading, page: number): number | null {
  if (end === 'first') return page + 1
  return page > 1 ? page - 1 : null
}

/** Whether no page further inside was read. Only there may the doubt be dropped: that happens once a page, so it ends however much the list moves. */
function isDeepest({ top, answerOf }: EndReading, from: number): boolean {
  return ![...answerOf].some(([page, answer]) => answer >= (top ?? 1) && page < from)
}

/** Whether a page holds an item that the reading met before this answer, and that no gap can stand in front of. */
function isJoined({ top, doubtful }: EndReading, rows: readonly RefreshRow[], before: number): boolean {
  return rows.some((row) => {
    const { metIn } = row
    return metIn !== null && isMet(row, top ?? 1) && metIn < before && !doubtful.includes(metIn)
  })
}

/**
 * Whether items may have moved between pages further inside since the reading stepped outward. The total does not show changed items of a list
 * that is sorted by update, which come to its newest end; and from `last` inwards it rises also by items that are added there.
 */
function isMoved(before: EndReading, reading: EndReading, { page, rows }: RefreshAnswer): boolean {
  const isOther = (rows[0]?.metIn ?? null) !== (before.answerOf.get(page) ?? null)
  const rise = totalRise(before, reading)
  return isOther || rise < 0 || (reading.end === 'first' && rise > 0)
}

// Without a total nothing shows that an item was deleted from pages already read and another one slid past the reading, which may be new if
// the pages around it hold news. Such pages are asked for again: if they hold the same items, none has slid.

/** The most pages that are asked for again: of more, one would nearly always have changed, and each costs a request. */
const MOST_AGAIN = 8

/** How many pages from the first one on end with news, so that an item that slid past them may be new. */
export function unprovenPages(
  before: EndReading,
  { end, total, top, answers, unproven }: EndReading,
): number {
  const isFurther = before.top !== null && top !== null
  const isUncounted = total === null || before.total === null
  // From `last` inwards a deletion moves rows that were read to pages that were not.
  return end === 'first' && isUncounted && isFurther && before.news.oldInRow === 0 ? answers - top : unproven
}

/** Ends a reading that has met known rows, or asks for the pages in front of them again. */
export function askAgain(reading: EndReading): EndReading {
  const { unproven } = reading
  if (hasGivenUp(reading)) return { ...reading, outcome: 'doubtful' }
  if (unproven === 0) return { ...reading, outcome: 'settled' }
  return unproven > MOST_AGAIN
    ? { ...reading, outcome: 'unproven' }
    : { ...reading, ask: unproven, askedAgain: 1 }
}

/** Compares a page with what it held before, and asks for the one in front of it. */
export function compareAgain(noted: EndReading, { page, rows, at }: RefreshAnswer): EndReading {
  const before = (noted.top ?? 1) + page - 1
  const isSame = rows.length > 0 && rows.every(({ metIn }) => metIn === before)
  const reading = { ...noted, news: noteAdded(noted.news, rows, at) }
  if (!isSame) return { ...reading, outcome: 'unproven' }
  return page > 1
    ? { ...reading, ask: page - 1, askedAgain: noted.askedAgain + 1 }
    : { ...reading, outcome: 'settled' }
}
