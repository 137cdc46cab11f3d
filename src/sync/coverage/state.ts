/**
 * Where a key stands in what a pass has read: the answer that it belongs to, by its number in the ledger, and its place
 * among the keys of that answer. Whole where the pass read it first, with a fraction where it was found in between.
 */
export interface ListPosition {
  segment: number
  position: number
}

/** A key whose place in the list, counted from 0, was seen, and how long the list was then. */
export interface Frontier {
  page: number
  place: ListPosition
  index: number
  total: number | null
}

/**
 * Why a page is asked for: `forward` reads on; `back` follows a fall of the total to a known item, and `again` reads the
 * page before it anew, since something came meanwhile; `overlap` finds the place where an interrupted walk stood; `look`
 * compares an old page with the ledger; `still` asks a page of a list that never moved; `front` looks for what was put in
 * front; `sample` looks for what was put in between.
 */
export type Why = 'forward' | 'back' | 'reread' | 'overlap' | 'look' | 'spot-check' | 'front' | 'sample'

export interface Question {
  why: Why
  page: number
  /** The distance from the page's last known key that stands at or before this place is to be counted; null: none is. */
  until: ListPosition | null
  /** Before this segment stand the keys of a page that holds none that is known; null: behind all others. */
  before: number | null
}

/** A step back under way: from which page, and the greatest total that an answer named meanwhile, against that page's own. */
export interface StepBack {
  page: number
  total: number | null
  rose: boolean
}

/** The search for the place where an interrupted walk stood. `top` is the page from which it goes down. */
export interface Overlap {
  until: ListPosition
  index: number
  total: number | null
  top: { page: number; next: number | null; total: number | null } | null
  rose: boolean
  jumps: number
  /** Whether it is the first page after an interruption that is asked for: that one is carried to the interruption. */
  isFree: boolean
}

/**
 * A look back under way: between the pages `low` and `high` (that one too) more items are listed than the ledger knows,
 * `left` of them not found yet; null where the old page, `anchor`, has still to say how many.
 */
export interface LookBack {
  frontier: Frontier
  anchor: number
  /** The page up to which the old page was compared last. */
  upTo: number
  low: number
  high: number
  left: number | null
  rounds: number
  fails: number
  /** Whether the total changed, so that the next answer that reads on has to give a new frontier. */
  waiting: boolean
}

/** What the answers of a walk said of the list's total. */
export interface Totals {
  /** Answers with a total in all passes, the last one's total, and by how much it differed from the one before. */
  answers: number
  last: number | null
  change: number
  /** Answers whose total went back in the direction from which the answer before had come. */
  turns: number
  /** Items on the answers that read on in this pass; null where an overlap took the place of some. */
  listed: number | null
  /** Of these the items, and the total, of the last answer. */
  listedLast: number
  end: number | null
  /** Whether the pass before, or the job's walk before, listed another number of items than its total. */
  isDoubted: boolean
}

/** What a pass saw of the list's movement, as numbers of answers that showed some, where it is not items. What one answer shows is one movement. */
export interface Movement {
  /** The total rose, and nothing came again: something was added ahead of the reader. */
  rises: number
  /** The total fell, and nothing came again; and of these falls those behind which an unread item was found. */
  falls: number
  pulled: number
  /** Items came again that no rise of the total explains: something was moved there. */
  pushes: number
  /** Looks back that found one item, at a boundary between two answers: it was skipped without a sign. */
  skips: number
  /** Items that looks back found several at a time: as many went at one stroke, and as many came. */
  together: number
  /** Items that no earlier pass of the walk had seen. */
  newToWalk: number
}

/** What a walk has seen so far, as far as its coverage can be told from it. */
export interface CoverageState {
  /** False once an answer came without a total to count by. */
  counted: boolean
  /** The total of the walk's first answer, and whether a later one differed. */
  firstTotal: number | null
  totalChanged: boolean
  totals: Totals
  /** Whether any pass of the walk met an item twice, or found a page changed when it asked again. */
  moved: boolean
  /** Whether an item came on two pages of one pass. */
  repeatedAcrossPages: boolean
  /** Whether old pages are looked back at: from the first movement, or from the start where one is to be expected. */
  watching: boolean
  /** The last page that the first answer of this pass named, and the last answer. */
  firstLastPage: number | null
  lastPage: number
  paginated: boolean
  /** Items on a page that is not the last; null where none came yet, 0 where pages differ. */
  perPage: number | null
  /** The total of this pass's first answer, and whether anything moved while the pass was read. */
  passTotal: number | null
  passMoved: boolean
  /** Whether the list ended on a page that says itself that there are more. */
  passShort: boolean
  /** Answers in this pass, items that came in it for the first time, and items that came on two of its pages. */
  passAnswers: number
  passDistinct: number
  passRepeated: number
  /** Answers of this pass to pages that were asked again. */
  askedAgain: number
  /** Pages in a row on which nothing was new to this pass. */
  pagesWithoutNews: number
  /** The last key of the last answer that read on, and the segments of the last such answers, the oldest first. */
  frontier: Frontier | null
  recent: number[]
  firstSegment: number | null
  /** The page up to which has been looked back. */
  anchor: number | null
  /**
   * Items that came twice though no rise of the total explains it; and those of the last answer alone, which the next one
   * may explain. Below 0: what of a rise is left to explain the next answer's.
   */
  unexplained: number
  carried: number
  /** Items met far behind their first place: each was moved from unread to read, or back, and may hide another. */
  relocated: number
  /** Items found at the front or by samples; and by looking back. */
  found: number
  foundBehind: number
  /** How the list moved in this pass; null where the walk began before this was counted. */
  movement: Movement | null
  /** Whether something was to be asked again, and could not be followed to its end. */
  unsettled: boolean
  stepBack: StepBack | null
  overlap: Overlap | null
  lookBack: LookBack | null
  /** Where the last sample was taken; null before the first. */
  sample: Frontier | null
  /** What of a pass's end is done. */
  closed: { spotCheck: boolean; front: boolean; samples: boolean }
}

/** What the decisions have to know of a walk that does not change while it goes on. */
export interface WalkRules {
  kind: 'full' | 'partial'
  firstPage: number
  total: 'check' | 'ignore'
}
