import { askSpot, findUnexplained, readFront, search, SPAN, TRIES } from './look-again.ts'
import type { Answer, Found, Frontier, Pass, Steps } from './pass.ts'

// One reading of a list, from its first page to its last, and of pages that are asked for again where the list moved. An item is lost only if it
// slides from the unread pages onto the read ones between two answers: the total falls then (step back), unless another one comes in the same
// moment (look back). An item that comes twice was pushed along by an addition, or moved, and then another may have gone the other way.

export function* readPass(pass: Pass): Steps<void> {
  do {
    yield* readOn(pass)
    if (!pass.isCountable) return
    if (!pass.moved && pass.distinct === pass.total) yield* askSpot(pass)
    yield* lookBack(pass)
    // A look back at the end may show that the list goes on.
  } while (pass.walk.next !== null)
  if (!pass.moved) return
  // What looks back found may be what a rise explains already.
  pass.found = Math.max(0, pass.found - pass.explained)
  yield* readFront(pass)
  yield* findUnexplained(pass)
}

/** Reads on to the end of the list. Whoever resumes a walk behind it has nothing left to find. */
function* readOn(pass: Pass): Steps<void> {
  const { walk } = pass
  while (walk.next !== null) {
    if (pass.wasResumed && pass.frontier.page > 0) yield* rejoin(pass, pass.frontier.page)
    else {
      pass.wasResumed = false
      const answer = yield* pass.askNext(walk.next)
      if (answer) yield* readNext(pass, answer)
      if (!pass.wasResumed) yield* lookBack(pass)
    }
  }
  pass.wasResumed = false
}

function* readNext(pass: Pass, answer: Answer): Steps<void> {
  const { walk, places, frontier } = pass
  const { total, lastPage } = answer
  if (frontier.page === 0 || !isPastEnd(answer)) {
    if (!pass.take(answer)) return
    const start = pass.pageStart
    yield* settle(pass, yield* stepBack(pass, answer, start), start)
    return
  }
  walk.next = null
  // Some lists name a next page behind each full one.
  if (lastPage === frontier.page && total !== null && total === frontier.total) return
  pass.moved = true
  const read = places.next
  yield* rejoin(pass, lastPage ?? 0)
  // Nothing stands behind it, and what it names as next was empty, unless the list has grown since. Some say of any empty page that the total is 0.
  const hasGrown = (total ?? 0) > 0 && (pass.frontier.total ?? 0) > (total ?? 0)
  if (places.next === read && (!hasGrown || pass.isUsedUp)) walk.next = null
}

/** Whether the list ends before this page: Laravel then answers with 200, no items and no next page. */
function isPastEnd({ page, ids, next, lastPage }: Answer): boolean {
  return ids.length === 0 && next === null && lastPage !== null && page > lastPage
}

/** The totals of pages that were read backwards, in list order. */
type Totals = (number | null)[]

/** The total fell and nothing came twice: reads back from this page to one with an item from before this place. */
function* stepBack(pass: Pass, { page, total }: Answer | Frontier, start: number): Steps<Totals> {
  const { walk, rules, places } = pass
  const totals = [total]
  let [earlier, isJoined] = [page - 1, false]
  for (; earlier >= rules.firstPage && !isJoined; earlier--) {
    earlier = Math.min(earlier, walk.lastPage)
    const answer = yield* pass.askAgain(earlier, 'back')
    if (!answer) return []
    totals.unshift(answer.total)
    // Items that the step itself found stand right before the page where it began: they do not count as known.
    isJoined = answer.ids.some((id) => (places.of(id) ?? start) < start - 0.5)
    pass.insert(answer.ids, start)
  }
  return totals
}

/** Asks again until nothing can have slipped between pages that were read backwards, to an item from before this place. */
function* settle(pass: Pass, backwards: Totals, start: number): Steps<void> {
  for (let totals = backwards; totals.some((total) => total !== totals[0]);) {
    // Unread items may have slid onto the last page in list order, and no fall shows it if as many have come since.
    yield* rejoin(pass, pass.frontier.page)
    totals.splice(-1, 1, pass.frontier.total)
    // An item may be on neither of two neighbouring pages if the later one was read before a rise, or after a fall.
    if (!totals.some((total, at) => (total ?? 0) < (totals[at - 1] ?? 0))) return
    totals = yield* stepBack(pass, pass.frontier, start)
  }
}

/**
 * Finds the last item that was read, from this page on backwards, and goes on behind it: after an interruption, where the list became
 * shorter, and where unread items may have slid onto the last page in list order.
 */
function* rejoin(pass: Pass, from: number): Steps<void> {
  const { rules, places, frontier } = pass
  pass.wasResumed = false
  let pages: Answer[] = []
  let found: Found | null = null
  for (let page = from; page >= rules.firstPage && !found; page--) {
    const answer = yield* pass.ask(page, 'rejoin')
    if (pass.wasResumed) {
      yield* rejoin(pass, frontier.page)
      return
    }
    if (isPastEnd(answer)) {
      pass.moved = true
      pages = []
      page = Math.min(page, (answer.lastPage ?? 0) + 1)
    } else {
      found = pass.locate(answer, frontier)
      pages.unshift(answer)
    }
  }
  const start = places.next
  pass.takeBehind(pages, found)
  const totals = pages.map(({ total }) => total)
  if (!pass.isUsedUp) yield* settle(pass, totals, start)
}

/** Looks back each `SPAN` pages, and once at the end, as soon as the list is known to move. */
function* lookBack(pass: Pass): Steps<void> {
  const { walk } = pass
  if (!pass.isCountable || !(pass.moved || pass.watching)) return
  // Not from the first page on: before this one is read, little can have happened.
  pass.anchor ??= Math.min(SPAN, Math.ceil(walk.lastPage / 2))
  for (;;) {
    const { page } = pass.frontier
    const isDue = page - pass.anchor >= SPAN || (walk.next === null && page > pass.anchor)
    if (pass.tries === 0 && !isDue) return
    const isOver = yield* search(pass, pass.anchor, pass.frontier)
    if (isOver || pass.tries === TRIES || pass.isUsedUp) {
      pass.unsettled ||= !isOver
      pass.anchor = page
      pass.tries = 0
    } else {
      pass.tries++
      if (walk.next !== null) return
      yield* rejoin(pass, page)
    }
  }
}
