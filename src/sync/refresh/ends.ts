import { ERRORS, JobError } from '../../errors.ts'

// How one end of a list is read: from there inwards, until enough rows in a row are old news; and over the pages before once more where
// something moved meanwhile, so that a row may have slid past the reading.

/** An end of a list: page 1 is at `first`. */
export type End = 'first' | 'last'

/** An answer as it is once it is written. */
export interface WrittenAnswer<Id> {
  page: number
  /** The time that its rows are written with, epoch milliseconds. Later than that of any answer of the job before it. */
  at: number
  total: number | null
  /** The page that the answer names as the next one; null at the end of the list. */
  next: number | null
  lastPage: number | null
  items: readonly RefreshItem<Id>[]
  /** Rows that the job has ever added, this answer's included; and items of the answer without a usable key that the mirror had not met before. */
  rowsAdded: number
  rejected: number
}

export interface RefreshItem<Id> {
  id: Id
  /** Its row as it is once the answer is written, epoch milliseconds; null where it has no usable key, and so no row. */
  seen: { firstAt: number; changedAt: number } | null
}

/** The page to ask for next. An error that the API gives instead of an answer is thrown here. */
export type Asking<Id, R> = Generator<number, R, WrittenAnswer<Id>>

/** What all answers of a refresh have shown. `at` and `rowsAdded`: of the last one. */
export type Shown = Record<'lastPage' | 'at' | 'rowsAdded' | 'added' | 'changed' | 'rejected', number>

/** How one end was read. */
export interface EndReading {
  end: End
  /** `settled`: known rows were met. `hole`: given up without. `unsettled`: the list ends before its own total, or moves too often to be followed. */
  outcome: 'settled' | 'hole' | 'unsettled'
  /** Rows that it added near this end. */
  added: number
  /** The total when the reading began, or when pages were asked for again; null without one. */
  total: number | null
  /** Pages from the end inwards. */
  pages: number
}

/** So many rows in a row that are old news settle a reading. More than one, since items that come a little late are among them. */
const OLD_NEWS = 25
/** So many pages in a row without a new row are a bulk update, or a field that changes in every answer. */
const MOST_WITHOUT_NEW = 40
/** After more known rows than this, an added one says nothing of this end: a walk missed it, or it is new at the other end. */
const MOST_BEFORE = 5
/** A list that moves between every two answers would be followed for ever: so many answers, and so many more for each page. */
const MOST_AT_FIRST = 8
const MOST_A_PAGE = 2
/** Answers in the search for the last page: a list that grows may always name a later one. */
const MOST_SOUGHT = 5

/**
 * Reads a list from one end inwards. Rows first seen after `settledAt` are news.
 *
 * Read from `first`, a deletion on pages that were read pulls a row past the reading: the total falls. Read from `last`, an insertion further
 * inside pushes one: the total rises, as if items had come at the end. Then pages are read towards the end, until one holds a row that surely
 * has no gap in front of it, and from there inwards again: an insertion in front may hide a further deletion, which the next answer shows.
 */
export function* readEnd<Id>(end: End, settledAt: number, shown: Shown): Asking<Id, EndReading> {
  const isFirst = end === 'first'
  const inwards = isFirst ? 1 : -1
  const reading: EndReading = { end, outcome: 'unsettled', added: 0, total: null, pages: 0 }
  const news = new NewsCount<Id>(reading, settledAt)
  /** The pages that were read, and their first items then. */
  const pages = new Map<number, Id | undefined>()
  /** Items in front of which none can have been passed over. */
  const sure = new Set<Id>()
  /** Where the list moved, while pages are read towards the end. */
  let doubt: { page: number; total: number | null } | null = null
  let total: number | null = null
  let least: number | null = null
  let answer = yield* isFirst ? ask<Id>(1, shown) : seekLast<Id>(shown, reading)
  for (let answers = 1; ; answers++) {
    const { page, items, next } = answer
    if (items.length === 0 && (!isFirst || page === 1)) return reading
    const before = total
    total = answer.total
    if (total !== null) least = Math.min(total, least ?? total)
    if (pages.size === 0 || doubt) reading.total = total
    // From `last`, what is pushed behind old news no longer matters.
    const hasMoved =
      before !== null && total !== null && (isFirst ? total < before : total > before && news.old === 0)
    const isOutermost = isFirst ? page === 1 : next === null
    const isJoined = isOutermost || (doubt ? items.some(({ id }) => sure.has(id)) : !hasMoved)
    const isSame = items[0] !== undefined && pages.get(page) === items[0].id
    pages.set(page, items[0]?.id)
    reading.pages = pages.size
    news.take(isFirst ? items : items.toReversed(), answer.at)
    if (isJoined) for (const { id } of items) sure.add(id)
    if (answers >= MOST_AT_FIRST + MOST_A_PAGE * pages.size) return reading
    if (!isJoined) {
      doubt ??= { page, total }
      answer = yield* ask<Id>(page - inwards, shown)
      continue
    }
    let reached = page
    // From `last`, most rises are rows that came at the end: the page before is as it was, and no fall hides that it was not meanwhile.
    if (doubt && !isFirst && isSame && page === doubt.page + 1 && (total ?? 0) >= (doubt.total ?? 0)) {
      reached = doubt.page
      for (const id of news.met) sure.add(id)
    } else if (doubt) news.beginAgain()
    doubt = null
    if (news.old >= OLD_NEWS) return { ...reading, outcome: 'settled' }
    if (news.pagesWithout >= MOST_WITHOUT_NEW) return { ...reading, outcome: 'hole' }
    if (isFirst ? next === null : reached === 1) {
      // The list was read whole: its new rows may have come at the other end, and it must not be shorter than it says.
      const isWhole = least === null ? items.length > 0 : news.met.size >= least
      return { ...reading, added: 0, outcome: isWhole ? 'settled' : 'unsettled' }
    }
    answer = yield* ask<Id>(reached + inwards, shown)
  }
}

/** Asks for a page, and counts what its answer shows. */
function* ask<Id>(page: number, shown: Shown): Asking<Id, WrittenAnswer<Id>> {
  const answer = yield page
  const { at, rowsAdded, items } = answer
  const added = addedIn(answer)
  Object.assign(shown, { at, rowsAdded, lastPage: answer.lastPage ?? shown.lastPage })
  shown.added += added
  shown.changed += items.filter(({ seen }) => seen?.changedAt === at).length - added
  shown.rejected += answer.rejected
  return answer
}

function addedIn<Id>({ items, at }: WrittenAnswer<Id>): number {
  return items.filter(({ seen }) => seen?.firstAt === at).length
}

/** The answer of the page where the list ends. */
function* seekLast<Id>(shown: Shown, reading: EndReading): Asking<Id, WrittenAnswer<Id>> {
  let page = Math.max(1, shown.lastPage)
  let isShorter = false
  for (let sought = 1; ; sought++) {
    let answer: WrittenAnswer<Id>
    try {
      answer = yield* ask<Id>(page, shown)
    } catch (error) {
      // An API may refuse a page past the end, and the list may have become shorter: page 1 names the last one.
      if (!mayBePastEnd(error, page) || sought > 1) throw error
      page = 1
      continue
    }
    const { items, lastPage, next } = answer
    const isPastEnd = items.length === 0 && page > 1
    isShorter ||= isPastEnd
    const last = isPastEnd
      ? Math.min(page - 1, lastPage ?? page - 1)
      : (lastPage ?? (isShorter ? page : (next ?? page)))
    if (sought === MOST_SOUGHT || (last <= page && !isPastEnd)) return answer
    // It is asked for again when its turn comes: its items may have moved since.
    reading.added += addedIn(answer)
    page = last
  }
}

/** Whether an API may refuse a page with this error since the list has become shorter. */
export function mayBePastEnd(error: unknown, page: number): boolean {
  return page > 1 && error instanceof JobError && ERRORS[error.code].pastTheEnd === true
}

/** The rows that a reading meets, from the newest on. */
class NewsCount<Id> {
  readonly met = new Set<Id>()
  /** Since the count began again. */
  #counted = new Set<Id>()
  /** Old news in a row, and pages in a row without a new row. */
  old = 0
  pagesWithout = 0
  /** Rows that the mirror had. */
  #known = 0
  /** A list that is sorted by update has its news in one block at its end. */
  #inBlock = true
  #reading: EndReading
  #settledAt: number

  constructor(reading: EndReading, settledAt: number) {
    this.#reading = reading
    this.#settledAt = settledAt
  }

  /** Rows have moved: what is old news begins again. */
  beginAgain(): void {
    this.old = 0
    this.#inBlock = true
    this.#counted.clear()
  }

  take(rows: readonly RefreshItem<Id>[], at: number): void {
    this.pagesWithout++
    for (const { id, seen } of rows) {
      // An item that an insertion pushed here says nothing of the rows after it.
      if (this.#counted.has(id)) continue
      this.#counted.add(id)
      this.met.add(id)
      if (seen !== null && seen.firstAt > this.#settledAt) {
        if (seen.firstAt === at && this.#known <= MOST_BEFORE) this.#reading.added++
        this.old = this.pagesWithout = 0
        continue
      }
      this.#known++
      this.#inBlock &&= seen === null || seen.changedAt > this.#settledAt
      this.old = this.#inBlock ? 0 : this.old + 1
    }
  }
}
