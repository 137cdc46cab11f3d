import type { Checkpoint, WalkOutcome } from '../types.ts'
import { forwardTo } from './observe.ts'
import { totalsOfNextPass } from './verdict.ts'

/**
 * The position of an item in what a pass has read: the ordinal of its answer in the page ledger, and its place among
 * the items of that answer. A whole number where the answer listed it; a fraction where it was found later, between
 * two others.
 */
export interface ListPosition {
  segment: number
  position: number
}

/** The last item read in list order: its page, its index in the list from 0 on, and the list's total then. */
export interface Frontier {
  page: number
  place: ListPosition
  index: number
  total: number | null
}

/**
 * Why a page is asked for. `forward`: the next page. `back`: the total fell, so earlier pages, until one holds a known
 * item. `reread`: the last page in list order once more. `overlap`: where an interrupted walk stopped. `look`: an old
 * page, to compare its distance with the ledger. `spot-check`: one page of a list that never moved. `front`: items
 * added in front. `sample`: items inserted elsewhere.
 */
export type Why = 'forward' | 'back' | 'reread' | 'overlap' | 'look' | 'spot-check' | 'front' | 'sample'

export interface Question {
  why: Why
  page: number
  /** Measure from the last known item on the page, at or before this position, to it; null: measure nothing. */
  until: ListPosition | null
  /** If no item of the page is known, its items belong in front of this segment; null: after all others. */
  before: number | null
}

/** A step back in progress: where it began, the total of its last answer, and whether the total rose meanwhile. */
export interface StepBack {
  page: number
  total: number | null
  rose: boolean
}

/** The search for the position where an interrupted walk stopped. `top`: the page from which it searches downwards. */
export interface Overlap {
  until: ListPosition
  index: number
  total: number | null
  top: { page: number; next: number | null; total: number | null } | null
  rose: boolean
  jumps: number
  /** The first request after an interruption: it does not count as asked again. */
  isFree: boolean
}

/**
 * A look back in progress: from page `low` to page `high`, inclusive, the list has `left` more items than the ledger.
 * `left` is null until the old page, `anchor`, was compared.
 */
export interface LookBack {
  frontier: Frontier
  anchor: number
  /** The page of the frontier at the last comparison. */
  upTo: number
  low: number
  high: number
  left: number | null
  rounds: number
  fails: number
  /** The total changed, so the look needs a new frontier, from the next answer in list order. */
  waiting: boolean
}

/** What a walk's answers said about the list's total. */
export interface Totals {
  /** In all passes: answers with a total, the last total, and its difference from the one before. */
  answers: number
  last: number | null
  change: number
  /** How often the total changed its direction. */
  turns: number
  /** Items on the pages that this pass read in list order; null after an overlap, which replaced some. */
  listed: number | null
  /** Items and total of the last of these pages. */
  listedLast: number
  end: number | null
  /** The previous pass, or the job's previous walk, did not list as many items as its total. */
  isDoubted: boolean
}

/** What a walk has seen so far: all that its coverage is judged by. Stored as JSON with the checkpoint. */
export interface CoverageState {
  /** False once a paged answer had no total. */
  counted: boolean
  /** The first total of the walk. */
  firstTotal: number | null
  /** A later total differed from it. */
  totalChanged: boolean
  totals: Totals
  /** Any pass met an item twice, or found a page changed when it asked for it again. */
  moved: boolean
  /** An item was listed on two pages of one pass. */
  repeatedAcrossPages: boolean
  /** Whether the walk looks back at old pages: from the first movement on, or from the start if the last walk moved. */
  watching: boolean
  /** The list's last page, by the first answer of this pass. */
  firstLastPage: number | null
  /** The same by its latest answer. */
  lastPage: number
  paginated: boolean
  /** Items on each page but the last; null: not known yet; 0: pages differ. */
  perPage: number | null
  /** The first total of this pass. */
  passTotal: number | null
  /** The list moved during this pass. */
  passMoved: boolean
  /** The list ended before the last page that it names. */
  passShort: boolean
  /** Answers of this pass. */
  passAnswers: number
  /** Distinct items of this pass. */
  passDistinct: number
  /** Repeated items of this pass. */
  passRepeated: number
  /** Pages that this pass asked for again. */
  askedAgain: number
  /** Pages in a row without an item that is new to this pass. */
  pagesWithoutNews: number
  frontier: Frontier | null
  /** The segments of the last pages read in list order, oldest first. */
  recent: number[]
  firstSegment: number | null
  /** The next look back starts at this page; null: none was made yet. */
  anchor: number | null
  /** Repeated items that no rise of the total explains. */
  unexplained: number
  /** Set by `explainRepeats`. Above 0: repeats of the last answers that the next rise may explain; below 0: a rise that explains the next repeats. */
  carried: number
  /** Items met again far from where they were read: each was moved, and may hide one that moved the other way. */
  relocated: number
  /** Missed items found at the front or by samples. */
  found: number
  /** Missed items found by looks back. */
  foundBehind: number
  /** A page that the walk needed could not be asked for again, or a search did not find what it looked for. */
  unsettled: boolean
  stepBack: StepBack | null
  overlap: Overlap | null
  lookBack: LookBack | null
  /** Where the last sample was taken; null: none yet. */
  sample: Frontier | null
  /** Which checks at the end of the pass are done. */
  closed: { spotCheck: boolean; front: boolean; samples: boolean }
}

/** The facts about a walk that never change. */
export interface WalkRules {
  kind: 'full' | 'partial'
  firstPage: number
  total: 'check' | 'ignore'
}

const NO_TOTALS: Totals = {
  answers: 0,
  last: null,
  change: 0,
  turns: 0,
  listed: 0,
  listedLast: 0,
  end: null,
  isDoubted: false,
}

const FRESH_PASS = {
  firstLastPage: null,
  lastPage: 0,
  paginated: true,
  perPage: null,
  passTotal: null,
  passMoved: false,
  passShort: false,
  passAnswers: 0,
  passDistinct: 0,
  passRepeated: 0,
  askedAgain: 0,
  pagesWithoutNews: 0,
  frontier: null,
  recent: [],
  firstSegment: null,
  anchor: null,
  unexplained: 0,
  carried: 0,
  relocated: 0,
  found: 0,
  foundBehind: 0,
  unsettled: false,
  stepBack: null,
  overlap: null,
  lookBack: null,
  sample: null,
  closed: { spotCheck: false, front: false, samples: false },
} satisfies Partial<CoverageState>

/**
 * The checkpoint of a new walk.
 * @param lastWalk The job's last complete full walk: if its list moved, this walk looks back from the start; if its
 * total was off, this walk doubts the total.
 */
export function startCheckpoint(
  firstPage: number,
  lastWalk: Pick<WalkOutcome, 'coverage' | 'totalOff'> | null = null,
): Checkpoint {
  const watching = lastWalk?.coverage === 'repaired' || lastWalk?.coverage === 'drifted'
  const isDoubted = (lastWalk?.totalOff ?? null) !== null
  return {
    pass: 1,
    nextPage: firstPage,
    ask: forwardTo(firstPage),
    state: {
      ...FRESH_PASS,
      counted: true,
      firstTotal: null,
      totalChanged: false,
      totals: { ...NO_TOTALS, isDoubted },
      moved: false,
      repeatedAcrossPages: false,
      watching,
    },
  }
}

/** The checkpoint of the next pass: what the walk has seen stays, the counts of the pass start at 0. */
export function nextPass({ pass, state }: Checkpoint): Checkpoint {
  const { counted, firstTotal, totalChanged, moved, repeatedAcrossPages } = state
  const watching = state.watching || moved || totalChanged
  const totals = totalsOfNextPass(state)
  return {
    pass: pass + 1,
    nextPage: 1,
    ask: forwardTo(1),
    state: {
      ...FRESH_PASS,
      counted,
      firstTotal,
      totalChanged,
      totals,
      moved,
      repeatedAcrossPages,
      watching,
    },
  }
}
