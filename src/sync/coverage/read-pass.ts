import { PassPages } from './pass-pages.ts'
import { areNeighbours, type Frontier, type Places } from './places.ts'
import { type Answer, isPastEnd, type Reply, riseFrom, type Steps } from './question.ts'

/** Pages between the two ends of a look back. */
const SPAN = 64
/** How often a look back starts again, since the list moved meanwhile. */
const TRIES = 12
/** A repeated item from one of the last so many pages was pushed along by an insertion; one from further back was moved. */
const NEAR = 8
/** The one page of a list that never moved that is asked for again, as a part of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37
/** How often the search for where a walk stopped may jump ahead. */
const JUMPS = 3

/**
 * One reading of a list, from its first page to its last, and of pages that are asked for again where the list moved. An item is lost only if
 * it slides from the unread pages onto the read ones between two answers: the total falls then (step back), unless another one comes in the
 * same moment (look back). An item that comes twice was pushed along by an addition, or moved, and then another may have gone the other way.
 */
export class PassReading extends PassPages {
  /** Reads the list. Throws BAD_RESPONSE if it does not end. */
  *read(): Steps<void> {
    this.walk.places.beginPass()
    let isSpotted = false
    do {
      yield* this.#readOn()
      if (!this.isCountable()) return
      if (!this.moved && !isSpotted && this.distinct === this.total) yield* this.#askSpot()
      isSpotted = true
      if (this.moved) yield* this.#lookBack()
    } while (this.next !== null)
    if (!this.moved) return
    yield* this.#readFront()
    yield* this.#findUnexplained()
  }

  *#readOn(): Steps<void> {
    while (this.next !== null) {
      const wasResumed = this.wasResumed
      this.wasResumed = false
      if (wasResumed && this.frontier) {
        yield* this.#rejoin(this.frontier.page, { isFree: true })
        continue
      }
      const reply: Reply = yield { page: this.next, why: 'forward', next: this.next }
      if (reply === 'resumed') this.wasResumed = true
      else yield* this.#readNext(this.note(reply))
      if (!this.wasResumed) yield* this.#lookBack()
    }
    // Whoever resumes a walk behind the end of the list has nothing left to find.
    this.wasResumed = false
  }

  /**
   * A page in list order. Counts its repeated items against the rise of the total. After a fall without any an unread item may have slid onto
   * an earlier page.
   */
  *#readNext(answer: Answer): Steps<void> {
    const { places } = this.walk
    const { ids } = answer
    this.assertEnds(answer)
    if (isPastEnd(answer) && answer.page > this.rules.firstPage) {
      this.moved = true
      return yield* this.#goOnAt(answer.lastPage ?? 0)
    }
    const known = this.frontier
    const repeated = known ? ids.filter((id) => places.isUpTo(id, known)) : []
    const nearest = this.starts.at(-NEAR)?.place ?? places.first
    const near = repeated.filter((id) => (places.of(id) ?? 0) >= nearest).length
    const rise = this.rules.total === 'check' ? riseFrom(known?.total, answer.total) : 0
    this.explain(near, rise)
    const twice = answer.items - ids.length
    this.unexplained += twice
    this.relocated += repeated.length - near
    this.repeated += repeated.length + twice
    if (repeated.length > 0) this.walk.repeatedAcrossPages = true
    if (repeated.length + twice > 0) this.moved = true
    this.starts.push({ page: answer.page, place: places.next })
    this.take(answer, false)
    if (near === 0 && rise < 0) yield* this.#stepBack(answer)
  }

  /** The total fell and nothing came twice: reads back to a page with an item that was known before. */
  *#stepBack({ page, total }: Answer): Steps<void> {
    const { places } = this.walk
    const start = this.starts.at(-1)?.place ?? places.first
    let [last, rose] = [total, false]
    let earlier = Math.min(page - 1, this.walk.lastPage)
    for (; earlier >= this.rules.firstPage; earlier = Math.min(earlier - 1, this.walk.lastPage)) {
      const answer = yield* this.again(earlier, 'back')
      if (!answer) return
      rose ||= riseFrom(last, answer.total) > 0
      last = answer.total
      const { ids } = answer
      // Items that the step itself found stand right before the page where it began: they do not count as known.
      const isJoined = ids.some((id) => (places.of(id) ?? start) < start - 1)
      this.insert(ids)
      if (isJoined) break
    }
    // The next page may not show a fall meanwhile: as many items may have come since.
    if (rose || last !== total) yield* this.#reread(page)
  }

  /** Reads the last page in list order once more, since unread items may have slid onto it; its known items are no repeats. */
  *#reread(page: number): Steps<void> {
    const answer = yield* this.again(page, 'reread')
    if (!answer) return
    const { ids } = answer
    if (isPastEnd(answer)) {
      this.moved = true
      yield* this.#goOnAt(answer.lastPage ?? 0)
    } else if (this.frontier && ids.every((id) => this.walk.places.of(id) === undefined))
      yield* this.#rejoin(page, { given: answer })
    else this.take(answer, true)
  }

  /** The list became shorter: goes on at its new last page. */
  *#goOnAt(lastPage: number): Steps<void> {
    this.next = null
    if (lastPage < this.rules.firstPage) return
    if (this.frontier) yield* this.#rejoin(lastPage, {})
    else this.next = lastPage
  }

  /**
   * Finds the last item that was read, from this page on, and goes on behind it.
   * @param isFree The first request after an interruption does not count as asked again. @param given An answer of that page.
   */
  *#rejoin(
    from: number,
    { isFree = false, given = null }: { isFree?: boolean; given?: Answer | null },
  ): Steps<void> {
    const before = this.frontier
    if (!before) return
    const { places } = this.walk
    let pages: Answer[] = []
    let found: ReturnType<Places['locate']> = null
    let [page, jumps, changed, free, answer] = [from, 0, false, isFree, given]
    for (; !found && page >= this.rules.firstPage; answer = null) {
      answer ??= free ? yield* this.ask(page, 'rejoin') : yield* this.again(page, 'rejoin')
      if (this.wasResumed) {
        this.wasResumed = false
        ;[pages, page, jumps, changed, free] = [[], before.page, 0, false, true]
        continue
      }
      free = false
      if (!answer) {
        this.moved = true
        break
      }
      if (isPastEnd(answer)) {
        this.moved = true
        pages = []
        page = Math.min(page - 1, answer.lastPage ?? 0)
        continue
      }
      const { ids } = answer
      const located = places.locate(ids, before)
      const perPage = this.perPage || ids.length
      const target = located ? Math.floor(((page - 1) * perPage + located.at + located.gap) / perPage) + 1 : 0
      const jump = Math.min(target, answer.lastPage ?? target)
      if (located && pages.length === 0 && located.gap > 0 && jump > page && jumps++ < JUMPS) {
        page = jump
        continue
      }
      changed ||= pages.length > 0 && pages[0]?.total !== answer.total
      pages.unshift(answer)
      found = located
      page--
    }
    this.#resumeBehind(before, pages, found)
    if (changed) yield* this.#reread(pages.at(-1)?.page ?? 0)
  }

  /** Takes the pages that a search has read, from the one with the last known item on. */
  #resumeBehind(before: Frontier, pages: readonly Answer[], found: ReturnType<Places['locate']>): void {
    const [first] = pages
    const { places } = this.walk
    if (!first) {
      this.next = null
      return
    }
    const { ids } = first
    if (found && pages.length === 1) {
      const perPage = this.perPage || ids.length
      const shift = (first.page - 1) * perPage + found.at + found.gap - before.index
      this.unexplained += Math.max(0, shift - Math.max(0, riseFrom(before.total, first.total)))
      this.repeated += Math.max(0, shift)
      if (shift !== 0) this.moved = true
      if (shift > 0 || first.page !== before.page) this.walk.repeatedAcrossPages = true
    } else {
      this.moved = true
      this.walk.repeatedAcrossPages = true
    }
    if (found) this.insert(ids.slice(0, found.at + 1))
    const read = places.next
    for (const one of pages) this.take(one, true)
    if (places.next > read) this.moved = true
    this.carried = 0
  }

  /** Looks back each `SPAN` pages, and once at the end, as soon as the list is known to move. */
  *#lookBack(): Steps<void> {
    if (!this.isCountable() || !(this.moved || this.watching)) return
    this.watching = true
    // Not from the first page on: before this one is read, little can have happened.
    this.anchor ??= Math.min(SPAN, Math.ceil(this.walk.lastPage / 2))
    for (;;) {
      const { page = 0 } = this.frontier ?? {}
      const isDue = page - this.anchor >= SPAN || (this.next === null && page > this.anchor)
      if (this.tries === 0 && !isDue) return
      const { found, isOver } = this.frontier
        ? yield* this.#searchFrom(this.anchor, this.frontier)
        : { found: 0, isOver: true }
      this.foundBehind += found
      this.tries = isOver ? 0 : this.tries + 1
      if (this.tries > TRIES) this.unsettled = true
      if (isOver || this.tries > TRIES) {
        this.anchor = page
        this.tries = 0
      } else if (this.next !== null) return
      else yield* this.#reread(page)
    }
  }

  /**
   * Compares how far an old page is from a known item with what was read between them. If it is more, an item slid past unseen: searches for
   * it by halves. `isOver` false: the list moved meanwhile, or what was sought was not found.
   */
  *#searchFrom(old: number, to: Frontier): Steps<{ found: number; isOver: boolean }> {
    const { places } = this.walk
    if (!this.perPage) {
      this.unsettled = true
      return { found: 0, isOver: true }
    }
    let [low, high, left] = [old, to.page - 1, null as number | null]
    let lowPlace: number | undefined
    let found = 0
    for (let page = old; ; page = Math.floor((low + high + 1) / 2)) {
      const answer = yield* this.again(page, 'look')
      if (!answer) return { found, isOver: true }
      const { ids } = answer
      const isLost = lowPlace === undefined && !ids.some((id) => places.isUpTo(id, to))
      // A page of new items only, which a burst of them fills, stands behind the page below it.
      const count = this.insert(ids, lowPlace === undefined ? undefined : lowPlace + 2)
      found += count
      const located = places.locate(ids, to)
      if (isLost || !located || answer.total !== to.total) return { found, isOver: false }
      const more = to.index - (page - 1) * this.perPage - located.at - located.gap
      left = left === null ? more : left - count
      if (more <= 0) high = page - 1
      else {
        low = page
        lowPlace = places.of(ids[located.at])
      }
      if (left <= 0 || low >= high) return { found, isOver: left <= 0 }
    }
  }

  /**
   * Something came twice without a rise and is not in front: as it came, or was moved, behind the reader, something else left. Looks for as many
   * items everywhere, from the front on: what was read first has had most time to move. Where items are moved about, this finds nothing.
   */
  *#findUnexplained(): Steps<void> {
    const last = this.frontier?.page ?? 0
    let tries = 0
    for (let low = this.rules.firstPage; low < last && !this.isSettled; ) {
      if (this.relocated > 0 || this.unsettled) return
      const high = yield* this.#locateOn(Math.min(low + SPAN, last))
      if (!high) return
      const { found, isOver } = yield* this.#searchFrom(low, high)
      this.foundElsewhere += found
      tries = isOver ? 0 : tries + 1
      if (tries > 0 && tries <= TRIES) continue
      tries = 0
      low = high.page
    }
  }

  /** The last known item of a page, where it stands now. */
  *#locateOn(page: number): Steps<Frontier | null> {
    const { frontier } = this
    const answer = frontier && (yield* this.again(page, 'look'))
    if (!answer || !this.perPage) return null
    const { ids, total } = answer
    this.foundElsewhere += this.insert(ids)
    const located = this.walk.places.locate(ids, frontier)
    if (!located) return null
    const at = this.walk.places.of(ids[located.at]) ?? 0
    return { page, at, index: (page - 1) * this.perPage + located.at, total }
  }

  /** Reads pages from the front on, until two items are neighbours as before: none behind them was added in front. */
  *#readFront(): Steps<void> {
    const { places } = this.walk
    for (let page = this.rules.firstPage; page <= (this.frontier?.page ?? 0); page++) {
      const answer = yield* this.again(page, 'front')
      if (!answer) return
      const { ids } = answer
      // The last three: a page boundary may have been between two of them.
      const last = ids.slice(-3).map((id) => places.of(id))
      this.foundInFront += this.insert(ids, places.first)
      if (answer.next === null || last.some((place, at) => areNeighbours(last[at - 1], place))) return
    }
  }

  /** Asks for one page of a list that never moved: if its items differ and the total does not, items left and came unnoticed. */
  *#askSpot(): Steps<void> {
    const { places, lastPage } = this.walk
    const page = Math.max(1, Math.round(SPOT * lastPage))
    const answer = yield* this.again(page, 'spot', false)
    if (!answer) return
    const { ids } = answer
    const start = this.starts.find((one) => one.page === page)?.place ?? 0
    const isSame = ids.every((id, at) => places.of(id) === start + 2 * at)
    this.insert(ids)
    if (isSame || answer.total !== this.frontier?.total) return
    this.moved = true
    this.unsettled = true
  }
}
