import { JobError } from '../../errors.ts'
import { counted } from '../../text.ts'
import { areNeighbours, type Frontier, type Located } from './places.ts'
import {
  type Answer,
  isPastEnd,
  type Reply,
  riseFrom,
  type Steps,
  type WalkFacts,
  type WalkRules,
  type Why,
} from './question.ts'

/** Pages between the two ends of a look back. */
const SPAN = 64
/** How often a look back starts again, since the list moved meanwhile. */
const TRIES = 12
/** The one page of a list that never moved that is asked for again, as a part of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37
/** How often the search for where a walk stopped may jump ahead. */
const JUMPS = 3
/** Pages that may be asked for again while little is read: the last page that a list names may be far too high. */
const AT_FIRST = 100
/** So many pages in a row without a new item are a circle. */
const CIRCLE_PAGES = 1000

/**
 * One reading of a list, from its first page to its last, and of pages that are asked for again where the list moved. An item is lost only if
 * it slides from the unread pages onto the read ones between two answers: the total falls then (step back), unless another one comes in the
 * same moment (look back). An item that comes twice was pushed along by an addition, or moved, and then another may have gone the other way.
 */
export class PassReading {
  /** Whether the list moved during this pass. */
  moved = false
  answers = 0
  /** Items that came again. */
  repeated = 0
  /** Missed items that were found in front. */
  foundInFront = 0
  /** The list ended before the last page that it names. */
  isShort = false
  /** The first total of this pass. */
  total: number | null = null

  #walk: WalkFacts
  #rules: WalkRules
  /** The next page in list order. */
  #next: number | null
  #frontier: Frontier | null = null
  /** The places of the first items of the pages read in list order, and of the last such page. */
  #starts = new Map<number, number>()
  #pageStart: number
  /** Items on each page but the last; null: not known yet; 0: pages differ. */
  #perPage: number | null = null
  #askedAgain = 0
  #pagesWithoutNews = 0
  #wasResumed = false
  /** Repeated items that a rise of the total explains, and the others. */
  #explained = 0
  #unexplained = 0
  /** Above 0: repeats that the next rise may explain; below 0: a rise that explains the next repeats. */
  #carried = 0
  /** Missed items that looks back found, and that the search for what is unexplained found. */
  #foundBehind = 0
  #foundElsewhere = 0
  /** A page could not be asked for again, or a look back did not find what it looked for. */
  #unsettled = false
  /** Whether it looks back; where the next look begins, and how often it was begun in vain. */
  #watching: boolean
  #anchor: number | null = null
  #tries = 0

  /** @param watching Whether it looks back from the start: the list is known to move. */
  constructor(walk: WalkFacts, rules: WalkRules, watching: boolean) {
    walk.places.beginPass()
    this.#walk = walk
    this.#rules = rules
    this.#next = walk.pass === 1 ? rules.firstPage : 1
    this.#pageStart = walk.places.first
    this.#watching = watching
  }

  get distinct(): number {
    return this.#walk.places.distinct
  }

  /**
   * Whether items found by asking again explain every item that came twice. What looks back found may be what a rise explains already.
   */
  get isSettled(): boolean {
    const spare = Math.max(0, this.#foundBehind - this.#explained)
    return !this.#unsettled && this.#unexplained <= this.foundInFront + this.#foundElsewhere + spare
  }

  /** Reads the list. Throws BAD_RESPONSE if it does not end. @param name The list, in errors. */
  *read(name: string): Steps<void> {
    for (let isSpotted = false; this.#next !== null; isSpotted = true) {
      yield* this.#readOn(name)
      if (!this.#isCountable()) return
      if (!this.moved && !isSpotted && this.distinct === this.total) yield* this.#askSpot()
      if (this.moved) yield* this.#lookBack()
    }
    if (!this.moved) return
    yield* this.#readFront()
    yield* this.#findUnexplained()
  }

  /**
   * Whether looks back prove anything: of a full walk, by a total, and not of a list in one answer, which cannot have moved.
   */
  #isCountable(): boolean {
    const { kind, total } = this.#rules
    return kind === 'full' && total === 'check' && this.#walk.counted && this.answers > 1
  }

  *#readOn(name: string): Steps<void> {
    while (this.#next !== null) {
      if (this.#wasResumed && this.#frontier) {
        yield* this.#rejoin(this.#frontier.page, true)
        continue
      }
      this.#wasResumed = false
      const reply: Reply = yield this.#question(this.#next, 'forward')
      if (reply === 'resumed') {
        this.#wasResumed = true
        continue
      }
      yield* this.#readNext(this.#note(reply), name)
      if (!this.#wasResumed) yield* this.#lookBack()
    }
    // Whoever resumes a walk behind the end of the list has nothing left to find.
    this.#wasResumed = false
  }

  #question(page: number, why: Why) {
    return { page, why, next: this.#next, pass: this.#walk.pass }
  }

  /** Asks for a page again; null once a pass asked again for as many as the list has: then it proves nothing. */
  *#again(page: number, why: Why, isFree = false): Steps<Answer | null> {
    const most = Math.min(this.#walk.lastPage, (this.#frontier?.page ?? 0) + AT_FIRST)
    if (!isFree && this.#askedAgain++ >= most) {
      this.#unsettled = true
      return null
    }
    for (;;) {
      const reply = yield this.#question(page, why)
      if (reply !== 'resumed') return this.#note(reply)
      this.#wasResumed = true
    }
  }

  /** What every answer says, whatever was asked. */
  #note(answer: Answer): Answer {
    const { page, ids, items, total, next, lastPage } = answer
    const walk = this.#walk
    // Those of a page in list order count as news as long as they have no place.
    walk.places.see(ids)
    this.answers++
    walk.counted &&= total !== null
    walk.firstTotal ??= total
    walk.lastTotal = total ?? walk.lastTotal
    walk.lastPage = lastPage ?? Math.max(walk.lastPage, page)
    this.total ??= total
    if (total !== null && total !== walk.firstTotal) walk.totalChanged = true
    if (total !== null && total !== this.total) this.moved = true
    if (next !== null) {
      const isUsual = items === ids.length && (this.#perPage === null || this.#perPage === items)
      this.#perPage = isUsual ? items : 0
    }
    return answer
  }

  /**
   * A page in list order. Counts its repeated items against the rise of the total. After a fall without any an unread item may have slid onto
   * an earlier page.
   */
  *#readNext(answer: Answer, name: string): Steps<void> {
    const { places } = this.#walk
    const { page, ids, items, total } = answer
    this.#pagesWithoutNews = ids.some((id) => places.of(id) === undefined) ? 0 : this.#pagesWithoutNews + 1
    if (answer.next !== null && this.#pagesWithoutNews >= CIRCLE_PAGES) {
      const circle = counted(CIRCLE_PAGES, 'page')
      throw new JobError(
        'BAD_RESPONSE',
        `${name}: the list does not end: the last ${circle} brought nothing new`,
      )
    }
    if (isPastEnd(answer) && page > this.#rules.firstPage) {
      this.moved = true
      this.#next = null
      return yield* this.#rejoin(answer.lastPage ?? 0)
    }
    const known = this.#frontier
    const repeated = known ? ids.filter((id) => places.isUpTo(id, known)) : []
    const again = repeated.length
    const twice = items - ids.length
    const rise = this.#rules.total === 'check' ? riseFrom(known?.total, total) : 0
    // Repeats may fill more than a page, so what is left of a rise explains those of the next one.
    const paid = Math.max(0, rise) + this.#carried
    this.#carried = this.#pagesWithoutNews > 0 ? Math.max(0, paid - again) : 0
    this.#unexplained += Math.max(0, again - paid) + twice
    this.#explained += Math.min(again, paid)
    this.repeated += again + twice
    if (again > 0) this.#walk.repeatedAcrossPages = true
    if (again + twice > 0) this.moved = true
    this.#pageStart = places.next
    this.#starts.set(page, places.next)
    this.#take(answer, false)
    if (again === 0 && rise < 0) yield* this.#stepBack(answer)
  }

  /** Takes the items of a page in list order; its last one is the new frontier. `isAgain`: those that have a place keep it. */
  #take({ page, ids, total, next, lastPage }: Answer, isAgain: boolean): void {
    const { places } = this.#walk
    places.append(ids, isAgain)
    const at = places.of(ids.at(-1))
    const index = (page - 1) * (this.#perPage ?? 0) + ids.length - 1
    if (at !== undefined) this.#frontier = { page, at, index, total }
    this.#next = next
    this.isShort = next === null && (lastPage ?? 0) > page
  }

  /** Puts the new items of a page that was asked for again where they belong. */
  #insert(ids: readonly string[], where = this.#pageStart): number {
    const count = this.#walk.places.insert(ids, where)
    if (count > 0) this.moved = true
    return count
  }

  /** The total fell and nothing came twice: reads back to a page with an item that was known before. */
  *#stepBack({ page, total }: Answer): Steps<void> {
    const { places } = this.#walk
    const start = this.#pageStart
    let changed = false
    let earlier = Math.min(page - 1, this.#walk.lastPage)
    for (; earlier >= this.#rules.firstPage; earlier = Math.min(earlier - 1, this.#walk.lastPage)) {
      const answer = yield* this.#again(earlier, 'back')
      if (!answer) return
      changed ||= answer.total !== total
      // Items that the step itself found stand right before the page where it began: they do not count as known.
      const isJoined = answer.ids.some((id) => (places.of(id) ?? start) < start - 0.5)
      this.#insert(answer.ids)
      if (isJoined) break
    }
    // Unread items may have slid onto the last page in list order, and no fall shows it if as many have come since.
    if (changed) yield* this.#rejoin(page)
  }

  /**
   * Finds the last item that was read, from this page on, and goes on behind it: after an interruption, where the list became shorter, and
   * where unread items may have slid onto the last page in list order.
   * @param isResumed After an interruption; its first request does not count as asked again.
   */
  *#rejoin(from: number, isResumed = false): Steps<void> {
    const before = this.#frontier
    if (!before) return
    this.#wasResumed = false
    let pages: Answer[] = []
    let found: Located | null = null
    let [page, jumps, changed, isFree] = [from, 0, false, isResumed]
    while (!found && page >= this.#rules.firstPage) {
      const answer = yield* this.#again(page, 'rejoin', isFree)
      isFree = false
      if (this.#wasResumed) return yield* this.#rejoin(before.page, true)
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
      const located = this.#walk.places.locate(answer.ids, before)
      if (located && pages.length === 0 && located.gap > 0 && jumps++ < JUMPS) {
        const perPage = this.#perPage || answer.ids.length
        const target = Math.floor(this.#indexNow(answer, located) / perPage) + 1
        const jump = Math.min(target, answer.lastPage ?? target)
        if (jump > page) {
          page = jump
          continue
        }
      }
      changed ||= pages.length > 0 && pages[0]?.total !== answer.total
      pages.unshift(answer)
      found = located
      page--
    }
    this.#resumeBehind(before, pages, found)
    if (changed) yield* this.#rejoin(pages.at(-1)?.page ?? 0)
  }

  /** The index in the list at which the frontier stands now, by a page with a known item. */
  #indexNow({ page, ids }: Answer, { at, gap }: Located): number {
    return (page - 1) * (this.#perPage || ids.length) + at + gap
  }

  /** Takes the pages that a search has read, from the one with the last known item on. */
  #resumeBehind(before: Frontier, pages: readonly Answer[], found: Located | null): void {
    const [first] = pages
    const { places } = this.#walk
    if (!first) {
      this.#next = null
      return
    }
    if (found && pages.length === 1) {
      const shift = this.#indexNow(first, found) - before.index
      this.#unexplained += Math.max(0, shift - Math.max(0, riseFrom(before.total, first.total)))
      this.repeated += Math.max(0, shift)
      if (shift !== 0) this.moved = true
      if (shift > 0 || first.page !== before.page) this.#walk.repeatedAcrossPages = true
    } else {
      this.moved = true
      this.#walk.repeatedAcrossPages = true
    }
    if (found) this.#insert(first.ids.slice(0, found.at + 1))
    const read = places.next
    for (const one of pages) this.#take(one, true)
    if (places.next > read) this.moved = true
    this.#carried = 0
  }

  /** Looks back each `SPAN` pages, and once at the end, as soon as the list is known to move. */
  *#lookBack(): Steps<void> {
    if (!this.#isCountable() || !(this.moved || this.#watching)) return
    this.#watching = true
    // Not from the first page on: before this one is read, little can have happened.
    this.#anchor ??= Math.min(SPAN, Math.ceil(this.#walk.lastPage / 2))
    for (;;) {
      const to = this.#frontier
      const page = to?.page ?? 0
      const isDue = page - this.#anchor >= SPAN || (this.#next === null && page > this.#anchor)
      if (!to || (this.#tries === 0 && !isDue)) return
      const { found, isOver } = yield* this.#searchFrom(this.#anchor, to)
      this.#foundBehind += found
      this.#tries = isOver ? 0 : this.#tries + 1
      if (this.#tries > TRIES) this.#unsettled = true
      if (isOver || this.#tries > TRIES) {
        this.#anchor = page
        this.#tries = 0
      } else if (this.#next !== null) return
      else yield* this.#rejoin(page)
    }
  }

  /**
   * Compares how far an old page is from a known item with what was read between them. If it is more, an item slid past unseen: searches for
   * it by halves. `isOver` false: the list moved meanwhile, or what was sought was not found.
   */
  *#searchFrom(old: number, to: Frontier): Steps<{ found: number; isOver: boolean }> {
    if (!this.#perPage) {
      this.#unsettled = true
      return { found: 0, isOver: true }
    }
    const { places } = this.#walk
    let [low, high, left] = [old, to.page - 1, null as number | null]
    let lowPlace: number | undefined
    let found = 0
    for (let page = old; ; page = Math.floor((low + high + 1) / 2)) {
      const answer = yield* this.#again(page, 'look')
      if (!answer) return { found, isOver: true }
      const { ids } = answer
      const isLost = lowPlace === undefined && !ids.some((id) => places.isUpTo(id, to))
      // A page of new items only, which a burst of them fills, stands behind the page below it.
      const count = this.#insert(ids, lowPlace === undefined ? undefined : lowPlace + 1)
      found += count
      const located = places.locate(ids, to)
      if (isLost || !located || answer.total !== to.total) return { found, isOver: false }
      const more = to.index - this.#indexNow(answer, located)
      left = left === null ? more : left - count
      if (more <= 0) high = page - 1
      else {
        low = page
        lowPlace = located.place
      }
      if (left <= 0 || low >= high) return { found, isOver: left <= 0 }
    }
  }

  /** Reads pages from the front on, until two items are neighbours as before: none behind them was added in front. */
  *#readFront(): Steps<void> {
    const { places } = this.#walk
    for (let page = this.#rules.firstPage; page <= (this.#frontier?.page ?? 0); page++) {
      const answer = yield* this.#again(page, 'front')
      if (!answer) return
      // The last three: a page boundary may have been between two of them.
      const last = answer.ids.slice(-3).map((id) => places.of(id))
      this.foundInFront += this.#insert(answer.ids, places.first)
      if (answer.next === null || last.some((place, at) => areNeighbours(last[at - 1], place))) return
    }
  }

  /**
   * Something came twice without a rise and is not in front: as it came, or was moved, behind the reader, something else left. Looks for as many
   * items everywhere, from the front on: what was read first has had most time to move.
   */
  *#findUnexplained(): Steps<void> {
    const last = this.#frontier?.page ?? 0
    let tries = 0
    for (let low = this.#rules.firstPage; low < last && !this.isSettled; ) {
      if (this.#unsettled) return
      const high = yield* this.#locateOn(Math.min(low + SPAN, last))
      if (!high) return
      const { found, isOver } = yield* this.#searchFrom(low, high)
      this.#foundElsewhere += found
      tries = isOver ? 0 : tries + 1
      if (tries > 0 && tries <= TRIES) continue
      tries = 0
      low = high.page
    }
  }

  /** The last known item of a page, where it stands now. */
  *#locateOn(page: number): Steps<Frontier | null> {
    const { places } = this.#walk
    const answer = yield* this.#again(page, 'look')
    if (!answer || !this.#perPage || !this.#frontier) return null
    this.#foundElsewhere += this.#insert(answer.ids)
    const located = places.locate(answer.ids, this.#frontier)
    if (!located) return null
    const { at, place } = located
    return { page, at: place, index: (page - 1) * this.#perPage + at, total: answer.total }
  }

  /** Asks for one page of a list that never moved: if its items differ and the total does not, items left and came unnoticed. */
  *#askSpot(): Steps<void> {
    const { places, lastPage } = this.#walk
    const page = Math.max(1, Math.round(SPOT * lastPage))
    const answer = yield* this.#again(page, 'spot')
    if (!answer) return
    const start = this.#starts.get(page) ?? 0
    const isSame = answer.ids.every((id, at) => places.of(id) === start + at)
    this.#insert(answer.ids)
    if (isSame || answer.total !== this.#frontier?.total) return
    this.moved = true
    this.#unsettled = true
  }
}
