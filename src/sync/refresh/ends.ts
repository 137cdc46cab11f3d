import type { ErrorCode, JobError } from '../../errors.ts'
import type { RefreshState } from './state.ts'

// How the ends of a list are read. From an end inwards, until enough rows in a row are old news; and where something moved meanwhile,
// so that a row may have slid past, over the pages before once more.

/** An end of a list: page 1 is at `first`. */
export type End = 'first' | 'last'

/** What the decisions have to know of a list that does not change during a refresh. */
export interface RefreshRules {
  total: 'check' | 'ignore'
  /** The end where new items appear, as configured; `auto`: it is learned. */
  newest: End | 'auto'
}

/** Where new items were found lately: how many, the older ones counting less and less. */
export interface Places {
  first: number
  last: number
  /** New items that neither end showed: the total rose by them, or older pages held them. */
  elsewhere: number
}

/** An answer as it is once it is written. */
export interface WrittenAnswer<Id> {
  /** The time that its rows are written with, epoch milliseconds. Later than that of any answer of the job before it. */
  at: number
  total: number | null
  /** The page that the answer names as the next one; null at the end of the list. */
  next: number | null
  lastPage: number | null
  items: readonly RefreshItem<Id>[]
  /** Rows of the job that were first seen after the state's `settledAt`, wherever they were found, this answer's included. */
  found: number
}

export interface RefreshItem<Id> {
  id: Id
  /** Its row as it is once the answer is written, epoch milliseconds; null where it has no usable key, and so no row. */
  seen: { firstAt: number; changedAt: number } | null
  /** Whether it is an item without a usable key that the mirror had not met before: the total counts it, too. */
  isNewReject?: boolean
}

/**
 * `settled`: known rows were met. `hole`: given up after 1,000 rows without a new one. `unsettled`: the list ends before its own
 * total, or moves too often to be followed.
 */
export type Outcome = 'settled' | 'hole' | 'unsettled'

/** How one end was read. */
export interface EndReading {
  end: End
  outcome: Outcome
  /** Rows that it added near this end, that it added or changed anywhere, and its distinct items. */
  addedHere: number
  added: number
  changed: number
  items: number
  /** Items without a usable key that were met for the first time. */
  rejected: number
  /** The total of the first answer that counts; of the last one, if pages were asked for again; null without one. */
  total: number | null
  lastPage: number
  /** The pages that were read from the end inwards. */
  pages: number
  /** Rows first seen later are new to the next refresh: the time of the last answer, or of the first after which newer rows may follow unread. */
  settledAt: number
  /** Of the last answer. */
  at: number
  found: number
}

/** The page to ask for next; it is answered with what was written, or with the error that the API gave instead. */
export type Asking<Id, R> = Generator<number, R, WrittenAnswer<Id> | JobError>

/** So many rows in a row that are old news settle a reading. More than one, since items that come a little late are among them. */
const OLD_NEWS = 25

/** So many rows in a row without a new one are a bulk update, or a field that changes in every answer. An empty answer counts as 25. */
const CEILING = 1000
const EMPTY_ANSWER = 25

/** After more known rows than this, an added one says nothing of this end: a walk missed it, or it is new at the other end. */
const MOST_BEFORE = 5

/** A list that moves between every two answers would be followed for ever. */
const MOST_DOUBTFUL = 8
const MOST_SOUGHT = 40
const MOST_ANSWERS = 1000

const PAST_THE_END: readonly ErrorCode[] = ['ORGANIZATION_NOT_FOUND', 'BAD_REQUEST', 'UNEXPECTED_STATUS']

/** Reads a list from one end inwards. An interrupted reading begins again. */
export function* readEnd<Id>(
  end: End,
  state: RefreshState,
  { total: rule }: RefreshRules,
): Asking<Id, EndReading> {
  const { settledAt } = state
  const reading: EndReading = {
    end,
    outcome: 'unsettled',
    addedHere: 0,
    added: 0,
    changed: 0,
    items: 0,
    rejected: 0,
    total: null,
    lastPage: state.lastPage,
    pages: 0,
    settledAt: Number.POSITIVE_INFINITY,
    at: state.settledAt,
    found: 0,
  }
  const inward = (page: number) => (end === 'first' ? page + 1 : page - 1)
  const outward = (page: number) => (end === 'first' ? page - 1 : page + 1)
  let page = end === 'first' ? 1 : Math.max(1, state.lastPage)
  let answers = 0
  let isSeeking = end === 'last'
  let metPastEnd = false

  // What a new search for the last page forgets. `met`: of each item, the last answer that held it. Behind a doubtful one there may be a gap.
  let met = new Map<Id, number>()
  let answerOf = new Map<number, number>()
  let doubtful = new Set<number>()
  let isStepping = false
  let [isFromTop, hasMoved] = [false, false]
  let steppedFrom = 0
  let [old, withoutNew, known, leading] = [0, 0, 0, 0]
  let inBlock = true
  let total: number | null = null
  let leastTotal: number | null = null
  function forget(): void {
    ;[met, answerOf, doubtful] = [new Map(), new Map(), new Set()]
    isStepping = false
    ;[old, withoutNew, known, leading] = [0, 0, 0, 0]
    inBlock = true
    ;[total, leastTotal, reading.total] = [null, null, null]
  }

  /** Counts rows, the newest first. */
  function count(rows: readonly RefreshItem<Id>[], at: number): void {
    if (rows.length === 0) withoutNew += EMPTY_ANSWER
    for (const { id, seen } of rows) {
      // An item that an insertion pushed here says nothing of the rows after it.
      if (met.has(id)) {
        withoutNew++
        continue
      }
      if (seen !== null && seen.firstAt > settledAt) {
        if (seen.firstAt === at && known <= MOST_BEFORE) reading.addedHere++
        if (seen.firstAt === at && known === 0) leading++
        old = 0
        withoutNew = 0
        continue
      }
      known++
      withoutNew++
      // A list that is sorted by update has its news in one block at its end.
      inBlock &&= seen === null || seen.changedAt > settledAt
      old = inBlock ? 0 : old + 1
    }
  }

  while (answers < MOST_ANSWERS) {
    const answer = yield page
    if (answer instanceof Error) {
      // An API may refuse a page past the end, and the list may have become shorter: page 1 names the last one.
      if (!isSeeking || answers > 0 || page === 1 || !PAST_THE_END.includes(answer.code)) throw answer
      page = 1
      continue
    }
    answers++
    const { at, items, next } = answer
    noteAnswer(reading, answer)
    if (end === 'last' && (isSeeking || isPastEnd(page, answer))) {
      if (isPastEnd(page, answer)) {
        metPastEnd = true
        forget()
        page = Math.max(1, Math.min(page - 1, answer.lastPage ?? page - 1))
        isSeeking = true
      } else {
        const later = laterPage(page, answer, { isFirst: answers === 1, metPastEnd })
        isSeeking = later !== null
        // It is asked for again when its turn comes: its items may have moved since.
        if (later !== null) {
          reading.addedHere += addedIn(items, at)
          total = rule === 'ignore' ? null : answer.total
          page = later
        }
      }
      if (isSeeking && answers < MOST_SOUGHT) continue
      if (isSeeking) return reading
    }
    const now = rule === 'ignore' ? null : answer.total
    const rows = end === 'first' ? items : items.toReversed()
    const isFirst = answerOf.size === 0
    if (isFirst) reading.total = now
    leastTotal = now === null ? leastTotal : Math.min(now, leastTotal ?? now)

    // Read from `first` inwards, a deletion on pages that were read pulls a row past the reading: the total falls. Read from `last` inwards,
    // an insertion further inside does: the total rises, as if items had come at the end. Once old news is met, that no longer matters there.
    const mayBeNew = isFirst ? next !== null : old === 0
    const isSlid =
      total !== null && now !== null && (end === 'first' ? page > 1 && now < total : mayBeNew && now > total)
    const hasFallen = total !== null && now !== null && now < total
    total = now
    const isFurther = isStepping
    const isJoined = rows.some(({ id }) => met.has(id) && !doubtful.has(met.get(id) ?? answers))
    const before = answerOf.get(page) ?? null
    hasMoved ||= (met.get(items[0]?.id as Id) ?? null) !== before || hasFallen
    count(rows, at)
    for (const { id } of items) met.set(id, answers)
    answerOf.set(page, answers)
    reading.items = met.size
    reading.pages = answerOf.size
    if (isFurther) {
      // Nothing was read in front of the page where the reading began: a list that grows would be followed for ever.
      const isEdge = end === 'first' ? page === 1 : next === null || isFromTop
      reading.total = now
      isStepping = !isJoined && !isEdge
      if (isStepping) {
        doubtful.add(answers)
        page = outward(page)
        if (doubtful.size >= MOST_DOUBTFUL) return reading
        continue
      }
      // Rows after this page may have moved meanwhile, so they are read again. From `first` inwards that is always done: an insertion in front
      // hides a deletion further inside, since the total stays and the row that was pulled forward is pushed back.
      if (end === 'first' || hasMoved) {
        old = 0
        page = inward(page)
        continue
      }
      page = steppedFrom
      if ([...answerOf.keys()].every((one) => one >= page)) doubtful.clear()
    } else if (isSlid) {
      isStepping = true
      ;[isFromTop, steppedFrom, hasMoved] = [isFirst, page, false]
      if (end === 'last') reading.settledAt = Math.min(at, reading.settledAt)
      doubtful.add(answers)
      page = outward(page)
      if (doubtful.size >= MOST_DOUBTFUL) return reading
      continue
    }
    if (old >= OLD_NEWS) return { ...reading, outcome: 'settled' }
    if (withoutNew >= CEILING) return { ...reading, outcome: 'hole' }
    const isOver = end === 'first' ? next === null : page === 1
    // An empty answer may be a mistake of the API: an empty list is empty twice.
    const isDoubted = isOver && met.size === 0 && answers === 1
    if (isOver && !isDoubted) return atOtherEnd(items.length > 0)
    if (isDoubted) forget()
    else page = inward(page)
  }
  return { ...reading, outcome: 'hole' }

  /**
   * The end of a list that was read whole: it must not be shorter than it says, or empty. Rows added after one that the mirror had may be
   * new at the other end; if it had none, nothing shows which end is the newest.
   */
  function atOtherEnd(hasItems: boolean): EndReading {
    const isWhole = leastTotal === null ? hasItems : met.size > 0 && met.size >= leastTotal
    return { ...reading, outcome: isWhole ? 'settled' : 'unsettled', addedHere: known > 0 ? leading : 0 }
  }
}

/** What every answer changes, whatever it was asked for. */
function noteAnswer<Id>(reading: EndReading, { at, items, lastPage, found }: WrittenAnswer<Id>): void {
  const added = addedIn(items, at)
  reading.added += added
  reading.changed += items.filter(({ seen }) => seen?.changedAt === at).length - added
  reading.rejected += items.filter(({ isNewReject }) => isNewReject).length
  reading.lastPage = lastPage ?? reading.lastPage
  reading.at = at
  reading.found = found
}

function addedIn<Id>(items: readonly RefreshItem<Id>[], at: number): number {
  return items.filter(({ seen }) => seen?.firstAt === at).length
}

/** Laravel answers a page past the end with 200, no items and no next page. */
function isPastEnd<Id>(page: number, { items, next, lastPage }: WrittenAnswer<Id>): boolean {
  return items.length === 0 && page > 1 && next === null && (lastPage === null || page > lastPage)
}

/**
 * The later page to ask for; null: this is the last one. A list that grows would be followed for ever, so only the first answer may name a later
 * page. After a page past the end each answer may: that page may have been empty by mistake.
 */
function laterPage<Id>(
  page: number,
  { next, lastPage }: WrittenAnswer<Id>,
  { isFirst, metPastEnd }: { isFirst: boolean; metPastEnd: boolean },
): number | null {
  if (lastPage === null) return metPastEnd ? null : next
  return (isFirst || metPastEnd) && lastPage > page ? lastPage : null
}
