import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { mayAskAgain, moving, riseSince } from './observe.ts'
import type { ListPosition } from './state.ts'

/** Where in a list that never moved one page is asked again: a hidden movement is seen there as likely as anywhere. */
const STILL = 0.37

/** The one page that a still list is asked for again. */
export function askStill(from: Checkpoint): Checkpoint {
  const page = Math.max(1, Math.round(STILL * from.account.lastPage))
  return { ...from, ask: { why: 'still', page, until: null, before: null } }
}

/** Its answer. The same keys in the same order, or something went and something else came without a sign. */
export function checkStill(from: Checkpoint, page: Page, { places }: PageMatch): Checkpoint {
  const account = { ...from.account, closed: { ...from.account.closed, still: true } }
  const [first] = places
  const isSame = places.every(
    (place, index) => place?.segment === first?.segment && place?.position === index,
  )
  const isTold = riseSince(account.edge, page) !== 0
  const next = isSame || isTold ? account : { ...moving(account), unsettled: true }
  return { ...from, ask: null, account: next }
}

/** To look for what was put in front of the list after its first page was read, from that page on. */
export function askFront(from: Checkpoint, page: number): Checkpoint {
  const { account } = from
  if (!mayAskAgain(account)) return closeFront(from)
  return { ...from, ask: { why: 'front', page, until: null, before: account.firstSegment } }
}

/**
 * An answer of the front. Where two keys follow each other as they did at first, nothing more was put in front. Of the
 * last three, since two of them may have stood on two pages at first.
 */
export function readFront(from: Checkpoint, page: Page, { places, newToPass }: PageMatch): Checkpoint {
  const account = { ...from.account, found: from.account.found + newToPass }
  const next = { ...from, account }
  const last = places.slice(-3)
  const isOver = page.next === null || page.number >= (account.edge?.page ?? 0)
  return isOver || last.some((place, index) => areNeighbours(last[index - 1], place))
    ? closeFront(next)
    : askFront(next, page.number + 1)
}

/** Keys that were found later stand between whole numbers: where they were found they have neighbours by themselves. */
function areNeighbours(
  before: ListPosition | null | undefined,
  last: ListPosition | null | undefined,
): boolean {
  if (!before || !last || !Number.isInteger(last.position)) return false
  return before.segment === last.segment && before.position + 1 === last.position
}

function closeFront(from: Checkpoint): Checkpoint {
  const { account } = from
  return { ...from, ask: null, account: { ...account, closed: { ...account.closed, front: true } } }
}
