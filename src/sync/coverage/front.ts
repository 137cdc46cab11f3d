import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { markMoved, mayAskAgain, riseSince, withState } from './observe.ts'
import type { ListPosition } from './state.ts'

/** The page of the spot check, as a share of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37

/** Asks for one page of a list that never moved. */
export function askSpotCheck(from: Checkpoint): Checkpoint {
  const page = Math.max(1, Math.round(SPOT * from.state.lastPage))
  return { ...from, ask: { why: 'spot-check', page, until: null, before: null } }
}

/** An answer to `spot-check`: if keys or their order differ and the total does not, items left and came unnoticed. */
export function finishSpotCheck(from: Checkpoint, page: Page, { previous }: PageMatch): Checkpoint {
  const state = { ...from.state, closed: { ...from.state.closed, spotCheck: true } }
  const [first] = previous
  const isSame = previous.every(
    (place, index) => place?.segment === first?.segment && place?.position === index,
  )
  const isExplained = riseSince(state.frontier, page) !== 0
  return { ...from, state: isSame || isExplained ? state : { ...markMoved(state), unsettled: true } }
}

/** Looks for items added in front of the list since its first page was read. */
export function askFront(from: Checkpoint, page: number): Checkpoint {
  const { state } = from
  if (!mayAskAgain(state)) return closeFront(from)
  return { ...from, ask: { why: 'front', page, until: null, before: state.firstSegment } }
}

/**
 * An answer to `front`: where two keys are neighbours as before, none after them was added in front. Compares the
 * last three keys, since a page boundary may have been between two of them.
 */
export function continueFront(from: Checkpoint, page: Page, { previous, newToPass }: PageMatch): Checkpoint {
  const state = { ...from.state, found: from.state.found + newToPass }
  const next = { ...from, state }
  const last = previous.slice(-3)
  const isOver = page.next === null || page.number >= (state.frontier?.page ?? 0)
  return isOver || last.some((place, index) => areNeighbours(last[index - 1], place))
    ? closeFront(next)
    : askFront(next, page.number + 1)
}

/** Keys with a fraction were found later and do not count: they are neighbours of whatever they were found with. */
function areNeighbours(
  before: ListPosition | null | undefined,
  last: ListPosition | null | undefined,
): boolean {
  if (!before || !last || !Number.isInteger(last.position)) return false
  return before.segment === last.segment && before.position + 1 === last.position
}

function closeFront(from: Checkpoint): Checkpoint {
  return withState(from, { closed: { ...from.state.closed, front: true } })
}
