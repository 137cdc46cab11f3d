import type { Checkpoint, Page, PageMatch } from '../types.ts'
import type { CoverageState } from './account.ts'
import { edgeAfter } from './entering.ts'

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
