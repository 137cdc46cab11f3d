import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import type { CoverageState, Edge, Movement, Why } from './state.ts'
import { totalsAfter } from './totals.ts'

/** What every answer adds to the accounts, whatever it was asked for. */
export function enter(account: CoverageState, why: Why, page: Page, match: PageMatch): CoverageState {
  const isForward = why === 'forward'
  const isFree = why === 'overlap' && account.overlap?.isFree === true
  const isFound = !isForward && why !== 'overlap' && match.newToPass > 0
  return {
    ...counting(account, 'newToWalk', match.newToWalk),
    counted: account.counted && (page.total !== null || !page.paginated),
    firstTotal: account.firstTotal ?? page.total,
    totalChanged: account.totalChanged || differs(page.total, account.firstTotal),
    totals: totalsAfter(account.totals, why, page),
    firstLastPage: account.passAnswers === 0 ? page.lastPage : account.firstLastPage,
    lastPage: page.lastPage ?? Math.max(account.lastPage, page.number),
    paginated: page.paginated,
    perPage: perPageAfter(account.perPage, page, match),
    passTotal: account.passTotal ?? page.total,
    passMoved: account.passMoved || isFound || differs(page.total, account.passTotal),
    moved: account.moved || isFound,
    passAnswers: account.passAnswers + 1,
    passDistinct: account.passDistinct + match.newToPass,
    overlap: account.overlap && { ...account.overlap, isFree: false },
    askedAgain: account.askedAgain + (isForward || isFree ? 0 : 1),
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
export function moving(account: CoverageState): CoverageState {
  return { ...account, moved: true, passMoved: true }
}

/** The checkpoint of a walk that leaves unasked, or unfound, what its accounts would need. */
export function unsettled(from: Checkpoint): Checkpoint {
  return { ...from, account: { ...from.account, unsettled: true } }
}

/** So many pages may be asked again before the reader has come far: a list may name any last page. */
const AT_FIRST = 100

/** Whether one more page may be asked again: in one pass never more than the list has. */
export function mayAskAgain({ askedAgain, lastPage, edge }: CoverageState): boolean {
  return askedAgain < Math.min(lastPage, (edge?.page ?? 0) + AT_FIRST)
}

/** Where the last key of this answer stands; `before` where the answer holds none. */
export function edgeAfter(
  before: Edge | null,
  account: CoverageState,
  page: Page,
  { placed }: PageMatch,
): Edge | null {
  const place = placed.at(-1)
  if (!place) return before
  const index = (page.number - 1) * (account.perPage ?? 0) + placed.length - 1
  return { page: page.number, place, index, total: page.total }
}

/** By how much the list is longer than it was at its edge: below 0 where it is shorter, 0 where nobody can tell. */
export function riseSince(edge: Pick<Edge, 'total'> | null, page: Page): number {
  return edge === null || edge.total === null || page.total === null ? 0 : page.total - edge.total
}

/** An item met again within so many answers that read on was pushed there; one from further behind was moved. */
const NEAR = 8

/** The accounts after an answer that read on: its last key is the edge of what is read. */
export function readingAfter(account: CoverageState, page: Page, match: PageMatch): CoverageState {
  const edge = edgeAfter(account.edge, account, page, match)
  const segment = match.why === 'forward' ? match.placed[0]?.segment : undefined
  return {
    ...account,
    edge,
    lookBack: account.lookBack && { ...account.lookBack, waiting: false },
    recent: segment === undefined ? account.recent : [...account.recent, segment].slice(-NEAR),
    firstSegment: account.firstSegment ?? segment ?? null,
    passShort: page.next === null && (page.lastPage ?? 0) > page.number,
  }
}

/** To ask the last page that read on once more; what comes again on it is no repeat. */
export function askAgain(from: Checkpoint, page: number): Checkpoint {
  return { ...from, ask: { why: 'again', page, until: null, before: null } }
}

/** The account after so many more movements of a kind; of a walk that began before they were counted, unchanged. */
export function counting(account: CoverageState, kind: keyof Movement, more = 1): CoverageState {
  const { movement } = account
  if (movement === null || more === 0) return account
  return { ...account, movement: { ...movement, [kind]: movement[kind] + more } }
}
