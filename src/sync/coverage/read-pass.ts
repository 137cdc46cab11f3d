import type { Coverage } from '../types.ts'
import { type Located, Places } from './places.ts'

/**
 * Why a page is asked for. `forward`: the next page in list order. `back`: the total fell, so earlier pages, until one holds a known item.
 * `rejoin`: the last page in list order, or where its last item stands now. `look`: an old page, to compare its distance with what was read.
 * `spot`: one page of a list that never moved. `front`: items added in front.
 */
export type Why = 'forward' | 'back' | 'rejoin' | 'look' | 'spot' | 'front'

/** What a walk asks for. */
export interface Question {
  page: number
  why: Why
}

/** What coverage is judged by: a page that was asked for, as the page ledger keeps it. */
export interface Answer {
  page: number
  /** Of its distinct items, in list order. */
  ids: readonly string[]
  /** How many items it has, with those that it lists twice. */
  items: number
  total: number | null
  next: number | null
  lastPage: number | null
}

/** A part of a walk: asks for pages, and returns what it was begun for. `resumed`: another process goes on from here, however much later. */
export type Steps<T> = Generator<Question, T, Answer | 'resumed'>

/** How a walk reads its list: fixed at its start, and kept with it. */
export interface WalkRules {
  kind: 'full' | 'partial'
  firstPage: number
  total: 'check' | 'ignore'
  maxPasses: number
  /** How the job's last complete full walk ended; null: there is none. */
  lastCoverage: Coverage | null
}

const NO_TOTALS = { first: null, last: null }

/** What a walk knows of its list, in all its passes. */
export class WalkFacts {
  places = new Places()
  pass = 0
  /** The next page in list order; null: the pass has read the list to its end. */
  next: number | null = null
  /** False once an answer had no total: `api` leaves out one that is ignored. */
  counted = true
  /** The first total and the last one; null: the list cannot be counted by its total. */
  totals: { first: number | null; last: number | null } = NO_TOTALS
  /** A later total differed from the first one. */
  totalChanged = false
  /** An earlier pass saw the list move. */
  moved = false
  /** An item came on two pages of one pass. */
  repeatedAcrossPages = false
  /** The list's last page, as it said last. */
  lastPage = 0
  /** Why the last answer began a further pass; null: it did not. */
  again: string | null = null

  /** Distinct items. */
  get items(): number {
    return this.places.size
  }
}

/** The last item of a page in list order: its place, its index in the list from 0 on, and the total that the page named. */
interface Frontier {
  page: number
  at: number
  index: number
  total: number | null
}

/** A known item of a page that was asked for again. `index`: where the frontier stands in the list now, by that. */
type Found = Located & { index: number }

/** Pages between the two ends of a look back. */
const SPAN = 64
/** How often a look back starts again, since the list moved meanwhile. */
const TRIES = 12
/** The one page of a list that never moved that is asked for again, as a part of the list: no place is more likely to show a hidden movement. */
const SPOT = 0.37

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
  /** The list ended before the last page that it names. */
  isShort = false
  /** The first total of this pass. */
  total: number | null = null

  #walk: WalkFacts
  #rules: WalkRules
  #places: Places
  #frontier: Frontier | null = null
  /** The place of the first item of the last page in list order. */
  #pageStart: number
  /** Items on each page but the last; null: not known yet; 0: pages differ. */
  #perPage: number | null = null
  #askedAgain = 0
  #wasResumed = false
  /** Repeated items that a rise of the total explains, and the others. */
  #explained = 0
  #unexplained = 0
  /** A rise that explains the next repeats. */
  #carried = 0
  /** Missed items that were found by asking again; and those of them that looks back found. */
  #found = 0
  #foundBehind = 0
  /** Something happened that nothing can explain. */
  #unsettled = false
  /** Whether it looks back, from which page on, and how often it began again there. */
  #watching: boolean
  #anchor: number | null = null
  #tries = 0

  /** @param watching Whether it looks back from the start: the list is known to move. */
  constructor(walk: WalkFacts, rules: WalkRules, watching: boolean) {
    walk.places.beginPass()
    this.#walk = walk
    this.#rules = rules
    this.#places = walk.places
    walk.next = walk.pass === 1 ? rules.firstPage : 1
    this.#pageStart = walk.places.first
    this.#watching = watching
  }

  get distinct(): number {
    return this.#places.distinct
  }

  /** Whether items found by asking again explain every item that came twice. What looks back found may be what a rise explains already. */
  get isSettled(): boolean {
    const found = this.#found - Math.min(this.#foundBehind, this.#explained)
    return !this.#unsettled && this.#unexplained <= found
  }

  *read(): Steps<void> {
    for (let isSpotted = false; this.#walk.next !== null; isSpotted = true) {
      yield* this.#readOn()
      if (!this.#isCountable()) return
      if (!this.moved && !isSpotted && this.distinct === this.total) yield* this.#askSpot()
      if (this.moved) yield* this.#lookBack()
    }
    if (!this.moved) return
    yield* this.#readFront()
    yield* this.#findUnexplained()
  }

  /** Whether looks back prove anything: of a full walk, by a total, and not of a list in one answer, which cannot have moved. */
  #isCountable(): boolean {
    return this.#rules.kind === 'full' && this.#walk.counted && this.answers > 1
  }

  /** Reads on to the end of the list. Whoever resumes a walk behind it has nothing left to find. */
  *#readOn(): Steps<void> {
    while (this.#walk.next !== null) {
      if (this.#wasResumed && this.#frontier) yield* this.#rejoin(this.#frontier.page)
      else {
        this.#wasResumed = false
        const answer = yield* this.#ask(this.#walk.next, 'forward')
        if (answer) yield* this.#readNext(answer)
        if (!this.#wasResumed) yield* this.#lookBack()
      }
    }
    this.#wasResumed = false
  }

  /** Asks for a page; null: the walk was resumed, and has to rejoin before it reads on. */
  *#ask(page: number, why: Why): Steps<Answer | null> {
    for (;;) {
      const reply = yield { page, why }
      if (reply !== 'resumed') return this.#note(reply)
      this.#wasResumed = true
      // To find where a walk stopped takes a page more, that does not count.
      this.#askedAgain--
      if (why === 'forward') return null
    }
  }

  /** Asks for a page again; null once a pass asked again for as many as the list has: then it proves nothing. */
  *#askAgain(page: number, why: Why): Steps<Answer | null> {
    if (this.#askedAgain++ < this.#walk.lastPage) return yield* this.#ask(page, why)
    this.moved = true
    this.#unsettled = true
    return null
  }

  /** What every answer says, whatever was asked. */
  #note(answer: Answer): Answer {
    const { page, ids, items, total, next, lastPage } = answer
    const walk = this.#walk
    // Those of a page in list order count as news as long as they have no place.
    this.#places.see(ids)
    this.answers++
    walk.counted &&= total !== null
    walk.totals = walk.counted ? { first: walk.totals.first ?? total, last: total } : NO_TOTALS
    walk.lastPage = lastPage ?? Math.max(walk.lastPage, page)
    this.total ??= total
    walk.totalChanged ||= walk.counted && total !== walk.totals.first
    this.moved ||= total !== null && total !== this.total
    if (next !== null) {
      const isUsual = items === ids.length && (this.#perPage === null || this.#perPage === items)
      this.#perPage = isUsual ? items : 0
    }
    return answer
  }

  /** A page in list order. Its repeated items count against the rise of the total; after a fall without any, an unread item may have slid onto an earlier page. */
  *#readNext(answer: Answer): Steps<void> {
    const { ids, items, total } = answer
    const before = this.#frontier
    if (before && isPastEnd(answer)) {
      this.moved = true
      this.#walk.next = null
      return yield* this.#rejoin(answer.lastPage ?? 0)
    }
    const again = before ? ids.filter((id) => this.#places.isUpTo(id, before.at)).length : 0
    const twice = items - ids.length
    const rise = riseFrom(before, total)
    // Repeats may fill more than a page, so what is left of a rise explains those of the next one.
    const paid = Math.max(0, rise) + this.#carried
    this.#carried = ids.every((id) => this.#places.of(id) !== undefined) ? Math.max(0, paid - again) : 0
    this.#explained += Math.min(again, paid)
    this.#unexplained += Math.max(0, again - paid) + twice
    this.repeated += again + twice
    this.#walk.repeatedAcrossPages ||= again > 0
    this.moved ||= again + twice > 0
    this.#pageStart = this.#places.next
    this.#take(answer, 0)
    if (again === 0 && rise < 0) yield* this.#stepBack(answer)
  }

  /** Takes the items of a page in list order, from this one on; its last one is the new frontier. */
  #take({ page, ids, total, next, lastPage }: Answer, from: number): void {
    this.#places.append(ids.slice(from))
    const at = this.#places.of(ids.at(-1))
    const index = (page - 1) * (this.#perPage ?? 0) + ids.length - 1
    if (at !== undefined) this.#frontier = { page, at, index, total }
    this.#walk.next = next
    this.isShort = next === null && (lastPage ?? 0) > page
  }

  /** Puts the new items of a page that was asked for again where they belong. Returns how many they are. */
  #insert(ids: readonly string[], where = this.#pageStart): number {
    const count = this.#places.insert(ids, where)
    this.moved ||= count > 0
    return count
  }

  /** Looks on a page for the last item that was read up to the frontier; null: there is none. */
  #locate({ page, ids }: Answer, frontier: Frontier): Found | null {
    const located = this.#places.locate(ids, frontier.at)
    const index = (page - 1) * (this.#perPage || ids.length)
    return located && { ...located, index: index + located.at + located.gap }
  }

  /** The total fell and nothing came twice: reads back to a page with an item that was known before. */
  *#stepBack({ page, total }: Answer): Steps<void> {
    const start = this.#pageStart
    let [earlier, isJoined, changed] = [page - 1, false, false]
    for (; earlier >= this.#rules.firstPage && !isJoined; earlier--) {
      earlier = Math.min(earlier, this.#walk.lastPage)
      const answer = yield* this.#askAgain(earlier, 'back')
      if (!answer) return
      changed ||= answer.total !== total
      // Items that the step itself found stand right before the page where it began: they do not count as known.
      isJoined = answer.ids.some((id) => (this.#places.of(id) ?? start) < start - 0.5)
      this.#insert(answer.ids)
    }
    // Unread items may have slid onto the last page in list order, and no fall shows it if as many have come since.
    if (changed) yield* this.#rejoin(page)
  }

  /**
   * Finds the last item that was read, from this page on backwards, and goes on behind it: after an interruption, where the list became
   * shorter, and where unread items may have slid onto the last page in list order.
   */
  *#rejoin(from: number): Steps<void> {
    const before = this.#frontier
    if (!before) return
    this.#wasResumed = false
    let pages: Answer[] = []
    let [page, changed] = [from, false]
    let found: Found | null = null
    while (!found && page >= this.#rules.firstPage) {
      const answer = yield* this.#askAgain(page, 'rejoin')
      if (this.#wasResumed) return yield* this.#rejoin(before.page)
      if (!answer) break
      if (isPastEnd(answer)) {
        this.moved = true
        pages = []
        page = Math.min(page, (answer.lastPage ?? 0) + 1)
      } else {
        found = this.#locate(answer, before)
        changed ||= pages.length > 0 && pages[0]?.total !== answer.total
        pages.unshift(answer)
      }
      page--
    }
    this.#resumeBehind(before, pages, found)
    if (changed) yield* this.#rejoin(pages.at(-1)?.page ?? 0)
  }

  /** Takes the pages that a search has read, from the one with the last known item on. */
  #resumeBehind(before: Frontier, pages: readonly Answer[], found: Found | null): void {
    const [first] = pages
    if (!first) {
      this.#walk.next = null
      return
    }
    const shift = found && pages.length === 1 ? found.index - before.index : null
    if (shift !== 0) this.moved = true
    if (shift === null || shift > 0 || first.page !== before.page) this.#walk.repeatedAcrossPages = true
    this.repeated += Math.max(0, shift ?? 0)
    this.#unexplained += Math.max(0, (shift ?? 0) - Math.max(0, riseFrom(before, first.total)))
    if (found) this.#insert(first.ids.slice(0, found.at + 1))
    const read = this.#places.next
    for (const page of pages) this.#take(page, page === first && found ? found.at + 1 : 0)
    if (this.#places.next > read) this.moved = true
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
      const isDue = page - this.#anchor >= SPAN || (this.#walk.next === null && page > this.#anchor)
      if (!to || (this.#tries === 0 && !isDue)) return
      const before = this.#found
      const isOver = yield* this.#search(this.#anchor, to)
      this.#foundBehind += this.#found - before
      if (!isOver && this.#tries++ === TRIES) this.#unsettled = true
      if (isOver || this.#tries > TRIES) {
        this.#anchor = page
        this.#tries = 0
      } else if (this.#walk.next !== null) return
      else yield* this.#rejoin(page)
    }
  }

  /**
   * Compares how far an old page is from a known item with what was read between them. If it is more, an item slid past unseen: searches for
   * it by halves. False: the list moved meanwhile, or what was sought was not found.
   */
  *#search(old: number, to: Frontier): Steps<boolean> {
    if (!this.#perPage) {
      this.#unsettled = true
      return true
    }
    let [low, high] = [old, to.page - 1]
    let left: number | null = null
    let lowPlace: number | undefined
    for (let page = old; ; page = Math.floor((low + high + 1) / 2)) {
      const answer = yield* this.#askAgain(page, 'look')
      if (!answer) return true
      const { ids } = answer
      const isLost = lowPlace === undefined && !ids.some((id) => this.#places.isUpTo(id, to.at))
      // A page of new items only, which a burst of them fills, stands behind the page below it.
      const count = this.#insert(ids, lowPlace === undefined ? undefined : lowPlace + 1)
      this.#found += count
      const known = this.#locate(answer, to)
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
  *#readFront(): Steps<void> {
    for (let page = this.#rules.firstPage; page <= (this.#frontier?.page ?? 0); page++) {
      const answer = yield* this.#askAgain(page, 'front')
      if (!answer) return
      // Of the last three: a page boundary may have been between two of them.
      const last = answer.ids.slice(-3)
      const isJoined = last.some((id, at) => this.#places.areNeighbours(last[at - 1], id))
      this.#found += this.#insert(answer.ids, this.#places.first)
      if (answer.next === null || isJoined) return
    }
  }

  /**
   * Something came twice without a rise and is not in front: as it came, or was moved, behind the reader, something else left. Looks for as many
   * items everywhere, from the front on: what was read first has had most time to move.
   */
  *#findUnexplained(): Steps<void> {
    const last = this.#frontier?.page ?? 0
    let tries = 0
    for (let low = this.#rules.firstPage; low < last && !this.isSettled && !this.#unsettled; ) {
      const high = Math.min(low + SPAN, last)
      const answer = yield* this.#askAgain(high, 'look')
      if (!answer || !this.#frontier) return
      this.#found += this.#insert(answer.ids)
      // The last known item of that page, where it stands now.
      const known = this.#places.locate(answer.ids, this.#frontier.at)
      if (!known) return
      const index = (high - 1) * (this.#perPage ?? 0) + known.at
      const to = { page: high, at: known.place, index, total: answer.total }
      const isOver = yield* this.#search(low, to)
      if (isOver || tries++ === TRIES) [low, tries] = [high, 0]
    }
  }

  /** Asks for one page of a list that never moved: if its items differ and the total does not, items left and came unnoticed. */
  *#askSpot(): Steps<void> {
    const page = Math.max(1, Math.round(SPOT * this.#walk.lastPage))
    const answer = this.#perPage ? yield* this.#askAgain(page, 'spot') : null
    if (!answer) return
    const start = this.#places.first + (page - 1) * (this.#perPage ?? 0)
    const isSame = answer.ids.every((id, at) => this.#places.of(id) === start + at)
    this.#insert(answer.ids)
    if (isSame || answer.total !== this.#frontier?.total) return
    this.moved = true
    this.#unsettled = true
  }
}

/** Whether the list has become shorter than this page: Laravel then answers with 200, no items and no next page. */
function isPastEnd({ page, ids, next, lastPage }: Answer): boolean {
  return ids.length === 0 && next === null && lastPage !== null && page > lastPage
}

/** How much the total rose since then; below 0 if it fell, 0 if one is missing. */
function riseFrom(before: Frontier | null, total: number | null): number {
  return total === null ? 0 : total - (before?.total ?? total)
}
