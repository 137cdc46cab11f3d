import type { PageMatch } from '../seen.ts'
import type { Checkpoint, Page } from '../types.ts'
import type { CoverageState, Frontier, Question, Totals, Why } from './state.ts'

/** State changes common to all answers, whatever the question was. */
export function observeAnswer(state: CoverageState, why: Why, page: Page, match: PageMatch): CoverageState {
  const isForward = why === 'forward'
  const isFree = why === 'overlap' && state.overlap?.isFree === true
  const isFound = !isForward && why !== 'overlap' && match.newToPass > 0
  return {
    ...state,
    counted: state.counted && (page.total !== null || !page.paginated),
    firstTotal: state.firstTotal ?? page.total,
    totalChanged: state.totalChanged || differs(page.total, state.firstTotal),
    totals: totalsAfter(state.totals, why, page),
    firstLastPage: state.passAnswers === 0 ? page.lastPage : state.firstLastPage,
    lastPage: page.lastPage ?? Math.max(state.lastPage, page.number),
    paginated: page.paginated,
    perPage: perPageAfter(state.perPage, page, match),
    passTotal: state.passTotal ?? page.total,
    passMoved: state.passMoved || isFound || differs(page.total, state.passTotal),
    moved: state.moved || isFound,
    passAnswers: state.passAnswers + 1,
    passDistinct: state.passDistinct + match.newToPass,
    overlap: state.overlap && { ...state.overlap, isFree: false },
    askedAgain: state.askedAgain + (isForward || isFree ? 0 : 1),
  }
}

function differs(total: number | null, before: number | null): boolean {
  return total !== null && before !== null && total !== before
}

function perPageAfter(before: number | null, page: Page, { items }: PageMatch): number | null {
  if (page.next === null) return before
  const count = page.items.length
  return count === items.length && (before === null || before === count) ? count : 0
}

/** Returns the totals after one more answer. */
export function totalsAfter(totals: Totals, why: Why, { total, items }: Page): Totals {
  const { answers, last, change, turns } = totals
  const listed = listing(totals, why, { total, items })
  if (total === null) return listed
  const now = total - (last ?? total)
  const isTurn = now * change < 0
  return { ...listed, answers: answers + 1, last: total, change: now, turns: turns + (isTurn ? 1 : 0) }
}

function listing(totals: Totals, why: Why, { total, items }: Pick<Page, 'total' | 'items'>): Totals {
  if (why === 'overlap') return { ...totals, listed: null }
  if (why !== 'forward' && why !== 'reread') return totals
  // A page that is read again replaces the last one.
  const before = why === 'reread' ? totals.listedLast : 0
  const listed = totals.listed === null ? null : totals.listed - before + items.length
  return { ...totals, listed, listedLast: items.length, end: total }
}

/** The state after the list was seen to move. */
export function markMoved(state: CoverageState): CoverageState {
  return { ...state, moved: true, passMoved: true }
}

/** The checkpoint with these changes to its state. */
export function withState(from: Checkpoint, changes: Partial<CoverageState>): Checkpoint {
  return { ...from, state: { ...from.state, ...changes } }
}

/** The checkpoint of a pass that can no longer be proved complete. */
export function markUnsettled(from: Checkpoint): Checkpoint {
  return withState(from, { unsettled: true })
}

/** Pages that may be asked again while little is read: the last page that a list names may be far too high. */
const AT_FIRST = 100

/** Whether one more page may be asked again. A pass never asks more pages again than the list has. */
export function mayAskAgain({ askedAgain, lastPage, frontier }: CoverageState): boolean {
  return askedAgain < Math.min(lastPage, (frontier?.page ?? 0) + AT_FIRST)
}

/** The frontier after this answer: its last item, or `before` if it has none. */
export function frontierAfter(
  before: Frontier | null,
  state: CoverageState,
  page: Page,
  { positions }: PageMatch,
): Frontier | null {
  const place = positions.at(-1)
  if (!place) return before
  const index = (page.number - 1) * (state.perPage ?? 0) + positions.length - 1
  return { page: page.number, place, index, total: page.total }
}

/** Whether the list has become shorter than this page: Laravel then answers with 200, no items and no next page. */
export function isPastEnd(page: Page): boolean {
  return (
    page.items.length === 0 && page.next === null && page.lastPage !== null && page.number > page.lastPage
  )
}

/** How much the total rose since the frontier; below 0 if it fell, 0 if a total is missing. */
export function riseSince(frontier: Pick<Frontier, 'total'> | null, page: Page): number {
  return frontier === null || frontier.total === null || page.total === null ? 0 : page.total - frontier.total
}

/** A repeated item from one of the last 8 pages was pushed along by an insertion; one from further back was moved. */
const NEAR = 8

/** The state after a page read in list order: its last item is the new frontier. */
export function readingAfter(state: CoverageState, page: Page, match: PageMatch): CoverageState {
  const frontier = frontierAfter(state.frontier, state, page, match)
  const segment = match.why === 'forward' ? match.positions[0]?.segment : undefined
  return {
    ...state,
    frontier,
    lookBack: state.lookBack && { ...state.lookBack, waiting: false },
    recent: segment === undefined ? state.recent : [...state.recent, segment].slice(-NEAR),
    firstSegment: state.firstSegment ?? segment ?? null,
    passShort: page.next === null && (page.lastPage ?? 0) > page.number,
  }
}

/** The next page in list order. */
export function forwardTo(page: number): Question {
  return { why: 'forward', page, until: null, before: null }
}

/** Asks for the last page in list order once more; its known items are no repeats. */
export function askReread(from: Checkpoint, page: number): Checkpoint {
  return { ...from, ask: { why: 'reread', page, until: null, before: null } }
}

/** The same, if that page may hold unread items. If no more pages may be asked again, the pass is unsettled. */
export function rereadOrDoubt(from: Checkpoint, page: number): Checkpoint {
  return mayAskAgain(from.state) ? askReread(from, page) : markUnsettled(from)
}
