import type { ErrorCode, JobError } from '../../errors.ts'
import type { RefreshState } from './state.ts'

// How one end of a list is read: from there inwards, until enough rows in a row are old news; and over the pages before once more where
// something moved meanwhile, so that a row may have slid past the reading.

/** An end of a list: page 1 is at `first`. */
export type End = 'first' | 'last'

/** What the decisions have to know of a list that does not change during a refresh. */
export interface RefreshRules {
  total: 'check' | 'ignore'
  /** The end where new items appear, as configured; `auto`: it is learned. */
  newest: End | 'auto'
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

/** The page to ask for next; it is answered with what was written, or with the error that the API gave instead. */
export type Asking<Id, R> = Generator<number, R, WrittenAnswer<Id> | JobError>

/** So many rows in a row that are old news settle a reading. More than one, since items that come a little late are among them. */
const OLD_NEWS = 25

/** So many rows in a row without a new one are a bulk update, or a field that changes in every answer. An empty answer counts as 25. */
const CEILING = 1000
const EMPTY_ANSWER = 25

/** After more known rows than this, an added one says nothing of this end: a walk missed it, or it is new at the other end. */
const MOST_BEFORE = 5

/** A list that moves between every two answers would be followed for ever: so many answers, and so many more for each page. */
const MOST_AT_FIRST = 8
const MOST_A_PAGE = 3

/** How often a reading may begin again since it met a page past the end. */
const MOST_TIMES = 3

/** In the search for the last page: answers, and how often one may name a later page, as a list that grows always does. */
const MOST_SOUGHT = 40
const MOST_LATER = 2

const PAST_THE_END: readonly ErrorCode[] = ['ORGANIZATION_NOT_FOUND', 'BAD_REQUEST', 'UNEXPECTED_STATUS']

/** Reads a list from one end inwards. An interrupted reading begins again. */
export function* readEnd<Id>(
  end: End,
  { settledAt, lastPage }: Pick<RefreshState, 'settledAt' | 'lastPage'>,
  { total }: RefreshRules,
): Asking<Id, EndReading<Id>> {
  let from = lastPage
  for (let times = 1; ; times++) {
    const reading = new EndReading<Id>(end, from, settledAt, total === 'check')
    if ((yield* reading.read()) || times === MOST_TIMES) return reading
    // The list became much shorter, or an answer was empty by mistake.
    from = reading.lastPage
  }
}

/** How one end was read. */
export class EndReading<Id> {
  readonly end: End
  outcome: Outcome = 'unsettled'
  /** Rows that it added near this end, and that it added or changed anywhere. */
  addedHere = 0
  added = 0
  changed = 0
  /** Items without a usable key that were met for the first time. */
  rejected = 0
  /** The total of the first answer that counts; of the last one, if pages were asked for again; null without one. */
  total: number | null = null
  lastPage: number
  /** Of the last answer. */
  at: number
  found = 0
  /** The pages that were read from the end inwards, and their first items then. */
  readonly pages = new Map<number, Id | undefined>()
  /** All items; and those in front of which none can have been passed over. */
  readonly met = new Set<Id>()
  #sure = new Set<Id>()
  #isFirst: boolean
  #useTotal: boolean
  #settledAt: number
  #answers = 0
  /** Of the answer before; and the least one. */
  #total: number | null = null
  #leastTotal: number | null = null
  /** Old news in a row; rows in a row without a new one. A list that is sorted by update has its news in one block at its end. */
  #old = 0
  #withoutNew = 0
  #inBlock = true
  /** Rows that the mirror had; and those that were added in front of all of them. */
  #known = 0
  #leading = 0

  constructor(end: End, lastPage: number, settledAt: number, useTotal: boolean) {
    this.end = end
    this.lastPage = lastPage
    this.at = settledAt
    this.#settledAt = settledAt
    this.#useTotal = useTotal
    this.#isFirst = end === 'first'
  }

  /** False: it has to begin again, since it met a page past the end. */
  *read(): Asking<Id, boolean> {
    const begin = this.#isFirst ? { page: 1, answer: yield* this.#ask(1) } : yield* this.#seekLast()
    if (!begin) return true
    for (let { page, answer } = begin; ; answer = yield* this.#ask(page)) {
      if (!this.#isFirst && isPastEnd(page, answer)) return false
      const hasSlid = this.#mayHaveSlid(page, answer)
      this.#take(page, answer, !hasSlid)
      const step = hasSlid ? yield* this.#stepOutwards(page) : 'still'
      if (step === 'restless' || this.#isRestless()) return true
      if (step !== 'still') {
        // What is old news begins again, as the rows have moved.
        this.#old = 0
        this.#inBlock = true
        page = step
        continue
      }
      if (this.#old >= OLD_NEWS) return this.#end('settled')
      if (this.#withoutNew >= CEILING) return this.#end('hole')
      const isOver = this.#isFirst ? answer.next === null : page === 1
      // An empty list is empty twice: one such answer may be a mistake.
      if (isOver && (this.met.size > 0 || this.#answers > 1)) return this.#endAtOther(answer)
      if (!isOver) page += this.#isFirst ? 1 : -1
    }
  }

  /**
   * Read from `first` inwards, a deletion on pages that were read pulls a row past the reading: the total falls. Read from `last` inwards, an
   * insertion further inside pushes one: the total rises, as if items had come at the end. Behind old news, that no longer matters there.
   */
  #mayHaveSlid(page: number, answer: WrittenAnswer<Id>): boolean {
    const now = this.#totalOf(answer)
    if (now === null || this.#total === null) return false
    return this.#isFirst ? page > 1 && now < this.#total : this.#old === 0 && now > this.#total
  }

  /**
   * Reads pages towards the end, until one holds a row that surely has no gap in front of it. Returns the page to read again from; `still`:
   * none has slid past; `restless`: the list moves too often.
   */
  *#stepOutwards(from: number): Asking<Id, number | 'still' | 'restless'> {
    const before = this.#total
    for (let page = from; ; ) {
      if (this.#isRestless()) return 'restless'
      page += this.#isFirst ? -1 : 1
      const answer = yield* this.#ask(page)
      const { items, next } = answer
      const isJoined =
        items.some(({ id }) => this.#sure.has(id)) || (this.#isFirst ? page === 1 : next === null)
      const isSame = items[0] !== undefined && this.pages.get(page) === items[0].id
      this.#take(page, answer, isJoined)
      this.total = this.#total
      if (!isJoined) continue
      // At `last` most rises are rows that came at the end: the page before is as it was, and no fall hides that it was not meanwhile. At
      // `first` all is read again from there on: an insertion in front hides a deletion further inside, which the next answer shows.
      const isOnlyLonger = !this.#isFirst && isSame && (this.#total ?? 0) >= (before ?? 0)
      if (!isOnlyLonger || page !== from + 1) return page + (this.#isFirst ? 1 : -1)
      for (const id of this.met) this.#sure.add(id)
      return 'still'
    }
  }

  /** The page where the list ends. Null: it is not found. */
  *#seekLast(): Asking<Id, { page: number; answer: WrittenAnswer<Id> } | null> {
    let page = Math.max(1, this.lastPage)
    let [later, metPastEnd] = [0, false]
    for (let sought = 0; sought < MOST_SOUGHT; sought++) {
      const answer = yield page
      if (answer instanceof Error) {
        // An API may refuse a page past the end, and the list may have become shorter: page 1 names the last one.
        if (this.#answers > 0 || page === 1 || !PAST_THE_END.includes(answer.code)) throw answer
        page = 1
        continue
      }
      this.#note(answer)
      if (isPastEnd(page, answer)) {
        page = Math.max(1, Math.min(page - 1, answer.lastPage ?? page - 1))
        ;[later, metPastEnd] = [0, true]
        continue
      }
      const named = answer.lastPage ?? (metPastEnd ? null : answer.next)
      if (named === null || named <= page || later === MOST_LATER) return { page, answer }
      if (answer.lastPage !== null) later++
      // It is asked for again when its turn comes: its items may have moved since.
      this.addedHere += addedIn(answer)
      page = named
    }
    return null
  }

  *#ask(page: number): Asking<Id, WrittenAnswer<Id>> {
    const answer = yield page
    if (answer instanceof Error) throw answer
    this.#note(answer)
    return answer
  }

  /** What every answer changes, whatever it was asked for. */
  #note(answer: WrittenAnswer<Id>): void {
    const { at, items, lastPage, found } = answer
    const added = addedIn(answer)
    this.#answers++
    this.added += added
    this.changed += items.filter(({ seen }) => seen?.changedAt === at).length - added
    this.rejected += items.filter(({ isNewReject }) => isNewReject).length
    this.lastPage = lastPage ?? this.lastPage
    this.at = at
    this.found = found
  }

  /** Takes the rows of a page, the newest first. `isSure`: none in front of them can have been passed over. */
  #take(page: number, answer: WrittenAnswer<Id>, isSure: boolean): void {
    const now = this.#totalOf(answer)
    if (this.pages.size === 0) this.total = now
    if (now !== null) this.#leastTotal = Math.min(now, this.#leastTotal ?? now)
    this.#total = now
    this.pages.set(page, answer.items[0]?.id)
    if (answer.items.length === 0) this.#withoutNew += EMPTY_ANSWER
    for (const item of this.#isFirst ? answer.items : answer.items.toReversed()) {
      // An item that an insertion pushed here says nothing of the rows after it.
      if (this.met.has(item.id)) this.#withoutNew++
      else this.#count(item, answer.at)
      this.met.add(item.id)
      if (isSure) this.#sure.add(item.id)
    }
  }

  #count({ seen }: RefreshItem<Id>, at: number): void {
    if (seen !== null && seen.firstAt > this.#settledAt) {
      if (seen.firstAt === at && this.#known <= MOST_BEFORE) this.addedHere++
      if (seen.firstAt === at && this.#known === 0) this.#leading++
      this.#old = this.#withoutNew = 0
      return
    }
    this.#known++
    this.#withoutNew++
    this.#inBlock &&= seen === null || seen.changedAt > this.#settledAt
    this.#old = this.#inBlock ? 0 : this.#old + 1
  }

  #end(outcome: Outcome): true {
    this.outcome = outcome
    return true
  }

  /**
   * The end of a list that was read whole: it must not be shorter than it says, or empty. Rows added after one that the mirror had may be
   * new at the other end; if it had none, nothing shows which end is the newest.
   */
  #endAtOther({ items }: WrittenAnswer<Id>): true {
    const least = this.#leastTotal
    this.addedHere = this.#known > 0 ? this.#leading : 0
    const isWhole = least === null ? items.length > 0 : this.met.size > 0 && this.met.size >= least
    return this.#end(isWhole ? 'settled' : 'unsettled')
  }

  #isRestless(): boolean {
    return this.#answers >= MOST_AT_FIRST + MOST_A_PAGE * this.pages.size
  }

  #totalOf({ total }: WrittenAnswer<Id>): number | null {
    return this.#useTotal ? total : null
  }
}

function addedIn<Id>({ items, at }: WrittenAnswer<Id>): number {
  return items.filter(({ seen }) => seen?.firstAt === at).length
}

/** Laravel answers a page past the end with 200, no items and no next page. */
function isPastEnd<Id>(page: number, { items, next, lastPage }: WrittenAnswer<Id>): boolean {
  return items.length === 0 && page > 1 && next === null && (lastPage === null || page > lastPage)
}
