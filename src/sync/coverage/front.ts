import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { markMoved, mayAskAgain, riseSince } from './observe.ts'
import type { ListPosition } from './state.ts'

/** Where in a list that never moved one page is asked again: a hidden movement is seen there as likely as anywhere. */
const STILL = 0.37

/** The one page that a still list is asked for again. */
export function askSpotCheck(from: Checkpoint): Checkpoint {
  const page = Math.max(1, Math.round(STILL * from.state.lastPage))
  return { ...from, ask: { why: 'spot-check', page, until: null, before: null } }
}

/** Its answer. The same keys in the same order, or something went and something else came without a sign. */
export function finishSpotCheck(from: Checkpoint, page: Page, { places }: PageMatch): Checkpoint {
  const state = { ...from.state, closed: { ...from.state.closed, spotCheck: true } }
  const [first] = places
  const isSame = places.every(
    (place, index) => place?.segment === first?.segment && place?.position === index,
  )
  const isTold = riseSince(state.frontier, page) !== 0
  const next = isSame || isTold ? state : { ...markMoved(state), unsettled: true }
  return { ...from, ask: null, state: next }
}

/** To look for what was put in front of the list after its first page was read, from that page on. */
export function askFront(from: Checkpoint, page: number): Checkpoint {
  const { state } = from
  if (!mayAskAgain(state)) return closeFront(from)
  return { ...from, ask: { why: 'front', page, until: null, before: state.firstSegment } }
}

/**
 * An answer of the front. Where two keys follow each other as they did at first, nothing more was put in front. Of the
 * last three, since two of them may have stood on two pages at first.
 */
export function continueFront(from: Checkpoint, page: Page, { places, newToPass }: PageMatch): Checkpoint {
  const state = { ...from.state, found: from.state.found + newToPass }
  const next = { ...from, state }
  const last = places.slice(-3)
  const isOver = page.next === null || page.number >= (state.frontier?.page ?? 0)
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
  const { state } = from
  return { ...from, ask: null, state: { ...state, closed: { ...state.closed, front: true } } }
}
