import type { Frontier, Pass, Steps } from './pass.ts'

// Pages that are asked for again to find what slid past, or what came twice without a reason.

/** Pages between the two ends of a look back. */
export const SPAN = 64
/** How often a search starts again, since the list moved meanwhile. */
export const TRIES = 12
/** The one page of a list that never moved that is asked for again, as a part of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37

/**
 * Compares how far an old page is from a known item with what was read between them. If it is more, an item slid past unseen: searches for
 * it by halves. False: the list moved meanwhile, or what was sought was not found.
 */
export function* search(pass: Pass, old: number, to: Frontier): Steps<boolean> {
  const { places } = pass
  if (!pass.perPage) {
    pass.unsettled = true
    return true
  }
  let [low, high] = [old, to.page - 1]
  let left: number | null = null
  let lowPlace: number | undefined
  for (let page = old; ; page = Math.floor((low + high + 1) / 2)) {
    const answer = yield* pass.askAgain(page, 'look')
    if (!answer) return true
    const { ids } = answer
    const isLost = lowPlace === undefined && !ids.some((id) => places.isUpTo(id, to.at))
    // A page of new items only, which a burst of them fills, stands behind the page below it.
    const count = pass.insert(ids, lowPlace === undefined ? undefined : lowPlace + 1)
    pass.found += count
    const known = pass.locate(answer, to)
    if (isLost || !known || answer.total !== to.total) return false
    const more = to.index - known.index
    left = left === null ? more : left - count
    if (more <= 0) high = page - 1
    else {
      low = page
      lowPlace = known.place
    }
    if (left <= 0 || low >= high) return left <= 0
  }
}

/** Reads pages from the front on, until two items are neighbours as before: none behind them was added in front. */
export function* readFront(pass: Pass): Steps<void> {
  const { places, rules } = pass
  for (let page = rules.firstPage; page <= pass.frontier.page; page++) {
    const answer = yield* pass.askAgain(page, 'front')
    if (!answer) return
    // Of the last three: a page boundary may have been between two of them.
    const last = answer.ids.slice(-3)
    const isJoined = last.some((id, at) => places.areNeighbours(last[at - 1], id))
    pass.found += pass.insert(answer.ids, places.first)
    if (answer.next === null || isJoined) return
  }
}

/**
 * Something came twice without a rise and is not in front: as it came, or was moved, behind the reader, something else left. Looks for as many
 * items everywhere, from the front on: what was read first has had most time to move.
 */
export function* findUnexplained(pass: Pass): Steps<void> {
  const { places, rules, frontier } = pass
  let tries = 0
  for (let low = rules.firstPage; low < frontier.page && !pass.isSettled && !pass.unsettled;) {
    const high = Math.min(low + SPAN, frontier.page)
    const answer = yield* pass.askAgain(high, 'look')
    if (!answer) return
    pass.found += pass.insert(answer.ids)
    // The last known item of that page, where it stands now.
    const known = places.locate(answer.ids, frontier.at)
    if (!known) return
    const index = (high - 1) * (pass.perPage ?? 0) + known.at
    const to = { page: high, at: known.place, index, total: answer.total }
    const isOver = yield* search(pass, low, to)
    if (isOver || tries++ === TRIES) [low, tries] = [high, 0]
  }
}

/** Asks for one page of a list that never moved: if its items differ and the total does not, items left and came unnoticed. */
export function* askSpot(pass: Pass): Steps<void> {
  const { places, walk, perPage, frontier } = pass
  if (!perPage) return
  const page = Math.max(1, Math.round(SPOT * walk.lastPage))
  const answer = yield* pass.askAgain(page, 'spot')
  if (!answer) return
  const start = places.first + (page - 1) * perPage
  const isSame = pass.perPage === perPage && answer.ids.every((id, at) => places.of(id) === start + at)
  pass.insert(answer.ids)
  if (isSame || answer.total !== frontier.total) return
  pass.moved = true
  pass.unsettled = true
}
