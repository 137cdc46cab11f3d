import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import type { CoverageState, Frontier, Movement, Why } from './state.ts'
import { totalsAfter } from './totals.ts'

/** What every answer adds to the accounts, whatever it was asked for. */
export function observeAnswer(state: CoverageState, why: Why, page: Page, match: PageMatch): CoverageState {
  const isForward = why === 'forward'
  const isFree = why === 'overlap' && state.overlap?.isFree === true
  const isFound = !isForward && why !== 'overlap' && match.newToPass > 0
  return {
    ...countMovement(state, 'newToWalk', match.newToWalk),
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

function perPageAfter(before: number | null, page: Page, { entries }: PageMatch): number | null {
  if (page.next === null) return before
  const count = page.items.length
  return count === entries.length && (before === null || before === count) ? count : 0
}

/** The accounts after the list was seen to move. */
export function markMoved(state: CoverageState): CoverageState {
  return { ...state, moved: true, passMoved: true }
}

/** The checkpoint of a walk that leaves unasked, or unfound, what its accounts would need. */
export function markUnsettled(from: Checkpoint): Checkpoint {
  return { ...from, state: { ...from.state, unsettled: true } }
}

/** So many pages may be asked again before the reader has come far: a list may name any last page. */
const AT_FIRST = 100

/** Whether one more page may be asked again: in one pass never more than the list has. */
export function mayAskAgain({ askedAgain, lastPage, frontier }: CoverageState): boolean {
  return askedAgain < Math.min(lastPage, (frontier?.page ?? 0) + AT_FIRST)
}

/** Where the last key of this answer stands; `before` where the answer holds none. */
export function frontierAfter(
  before: Frontier | null,
  state: CoverageState,
  page: Page,
  { placed }: PageMatch,
): Frontier | null {
  const place = placed.at(-1)
  if (!place) return before
  const index = (page.number - 1) * (state.perPage ?? 0) + placed.length - 1
  return { page: page.number, place, index, total: page.total }
}

/** By how much the list is longer than it was at its frontier: below 0 where it is shorter, 0 where nobody can tell. */
export function riseSince(frontier: Pick<Frontier, 'total'> | null, page: Page): number {
  return frontier === null || frontier.total === null || page.total === null ? 0 : page.total - frontier.total
}

/** An item met again within so many answers that read on was pushed there; one from further behind was moved. */
const NEAR = 8

/** The accounts after an answer that read on: its last key is the frontier of what is read. */
export function readingAfter(state: CoverageState, page: Page, match: PageMatch): CoverageState {
  const frontier = frontierAfter(state.frontier, state, page, match)
  const segment = match.why === 'forward' ? match.placed[0]?.segment : undefined
  return {
    ...state,
    frontier,
    lookBack: state.lookBack && { ...state.lookBack, waiting: false },
    recent: segment === undefined ? state.recent : [...state.recent, segment].slice(-NEAR),
    firstSegment: state.firstSegment ?? segment ?? null,
    passShort: page.next === null && (page.lastPage ?? 0) > page.number,
  }
}

/** To ask the last page that read on once more; what comes again on it is no repeat. */
export function askReread(from: Checkpoint, page: number): Checkpoint {
  return { ...from, ask: { why: 'reread', page, until: null, before: null } }
}

/** The state after so many more movements of a kind; of a walk that began before they were counted, unchanged. */
export function countMovement(state: CoverageState, kind: keyof Movement, more = 1): CoverageState {
  const { movement } = state
  if (movement === null || more === 0) return state
  return { ...state, movement: { ...movement, [kind]: movement[kind] + more } }
}
