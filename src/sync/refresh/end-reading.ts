import type { End, RefreshRules } from './ends.ts'
import { type News, NO_NEWS } from './news.ts'

/** An item of an answer, by its row as it is once the answer is written. */
export interface RefreshRow {
  /** Epoch milliseconds; null where the item has no usable key, and so no row. */
  seen: { firstAt: number; changedAt: number } | null
  /** Whether it is an item without a usable key that the mirror had not met before: the total counts it, too. */
  isNewReject?: boolean
  /** The number of the answer, in this reading of one end, that held the item before; null where this one is the first. */
  metIn: number | null
}

/** One answer of a refresh, checked, and matched with the rows of the job. */
export interface RefreshAnswer {
  page: number
  /** The time that its rows are written with, epoch milliseconds. Later than that of any answer of the job before it. */
  at: number
  total: number | null
  /** The page that the answer names as the next one; null at the end of the list. */
  next: number | null
  lastPage: number | null
  /** One entry per item, in the order of the list. */
  rows: readonly RefreshRow[]
  /** Rows of the job that were first seen after the state's `settledAt`, wherever they were found, this answer's included. */
  found: number
}

/** The reading steps outward over pages that it has read, since an item may have slid past it. */
export interface StepOutward {
  /** The page from which it steps, and the number of its answer. */
  from: number
  answer: number
  /** Whether the total changed meanwhile. */
  moved: boolean
}

/**
 * `settled`: known rows were met. `unproven`, `doubtful`: they were met, but a row may have slid past, since there is no total, or since the list
 * moved too often. `hole`: given up after 1,000 rows without a new one. `unsettled`: the list ends before its own total.
 */
export type ReadingOutcome = 'settled' | 'unproven' | 'doubtful' | 'hole' | 'unsettled'

/** A list that is read from one end inwards. Kept in memory: an interrupted one begins again. */
export interface EndReading {
  end: End
  /** The page to ask for; null at the end. */
  ask: number | null
  outcome: ReadingOutcome | null
  /** Answers so far. */
  answers: number
  /** The number of the first answer that is not part of the search for the last page; null before it. */
  top: number | null
  /** By page, the number of its last answer. */
  answerOf: ReadonlyMap<number, number>
  /** Whether the search for the last page met a page past the end. */
  metPastEnd: boolean
  news: News
  /** Items without a usable key that were met for the first time. */
  rejected: number
  /** The total of the last answer. */
  total: number | null
  /** The smallest total of the reading. */
  leastTotal: number | null
  /** Of the answer that `top` is the number of. */
  topTotal: number | null
  lastPage: number | null
  stepOutward: StepOutward | null
  /**
   * When the reading first stepped outward to the last page, epoch milliseconds: rows that it has not read may follow those that it read there.
   */
  outwardsAt: number | null
  /** How many pages from the first one on hold only news, if no total shows whether a row slid past them. */
  unproven: number
  /** How many of these were asked again to see whether one did. */
  askedAgain: number
  /** Answers whose items may stand after a gap, since the list moved while it stepped outward. */
  doubtful: readonly number[]
}

/** How a reading is judged: the rules of the list, and `settledAt` of the state. */
export interface ReadingRules extends Pick<RefreshRules, 'total'> {
  settledAt: number
}

/** @param lastPage The last page by the refresh before: the search for the end begins there. */
export function beginReading(end: End, lastPage: number): EndReading {
  return {
    end,
    ask: end === 'first' ? 1 : Math.max(1, lastPage),
    outcome: null,
    answers: 0,
    top: null,
    answerOf: new Map(),
    metPastEnd: false,
    news: NO_NEWS,
    rejected: 0,
    total: null,
    leastTotal: null,
    topTotal: null,
    lastPage: null,
    stepOutward: null,
    outwardsAt: null,
    unproven: 0,
    askedAgain: 0,
    doubtful: [],
  }
}

/** What every answer changes, whatever it was asked for. */
export function noteAnswer(reading: EndReading, rules: ReadingRules, answer: RefreshAnswer): EndReading {
  const total = rules.total === 'ignore' ? null : answer.total
  const leastTotal =
    total === null ? reading.leastTotal : Math.min(total, reading.leastTotal ?? Number.POSITIVE_INFINITY)
  const lastPage = answer.lastPage ?? reading.lastPage
  const rejected = reading.rejected + answer.rows.filter(({ isNewReject }) => isNewReject).length
  const answers = reading.answers + 1
  const answerOf = new Map([...reading.answerOf, [answer.page, answers]])
  return { ...reading, answers, answerOf, ask: null, rejected, total, leastTotal, lastPage }
}

/** By how much the total rose since the last answer; below 0 where it fell. */
export function totalRise({ total: before }: EndReading, { total }: EndReading): number {
  return before === null || total === null ? 0 : total - before
}
