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
  /** 1, but of a partial walk. */
  firstPage: number
  total: 'check' | 'ignore'
  maxPasses: number
  /** How the job's last complete full walk ended; null: there is none. */
  lastCoverage: Coverage | null
}

/** What a walk knows of its list, in all its passes. */
export class WalkFacts {
  places = new Places()
  pass = 0
  /** The next page in list order; null: the pass has read the list to its end. */
  next: number | null = null
  /** False once an answer had no total: `api` leaves out one that is ignored. */
  counted = true
  /** The first total and the last one; null: the list cannot be counted by its total. */
  totals: Record<'first' | 'last', number | null> = { first: null, last: null }
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

/** The last item in list order: its page, its place, its index in the list from 0 on, and the total that its page named. */
export interface Frontier {
  page: number
  at: number
  index: number
  total: number | null
}

/** A known item of a page that was asked for again. `index`: where the frontier stands in the list now, by that. */
export type Found = Located & { index: number }

/** What one pass has read, and what it makes of that. It asks for all pages. */
export class Pass {
  /** Whether the list moved during this pass. */
  moved = false
  answers = 0
  /** Items that came again. */
  repeated = 0
  /** The list ended before the last page that it names. */
  isShort = false
  /** The first total of this pass. */
  total: number | null = null
  /** By how much the total rose, from answer to answer: items that came behind the reader are among these. What came between two passes is not. */
  rises = 0
  /** Something happened that nothing can explain. */
  unsettled = false
  /** Missed items that were found by asking again. */
  found = 0
  /** Repeated items that a rise of the total explains. */
  explained = 0
  /** The walk was resumed, and has not found the end of what it had read yet. */
  wasResumed = false
  /** Whether it looks back from the start: the list is known to move. From which page on it looks, and how often it began again there. */
  readonly watching: boolean
  anchor: number | null = null
  tries = 0
  frontier: Frontier = { page: 0, at: 0, index: -1, total: null }
  /** The place of the first item of the last page in list order. */
  pageStart: number
  /** Items on each page but the last; null: not known yet; 0: pages differ. */
  perPage: number | null = null
  readonly walk: WalkFacts
  readonly rules: WalkRules
  readonly places: Places
  #unexplained = 0
  /** A rise that explains the next repeats. */
  #carried = 0
  #askedAgain = 0
  /** The total fell since the frontier was read. */
  #hasFallen = false

  constructor(walk: WalkFacts, rules: WalkRules, watching: boolean) {
    walk.places.beginPass()
    walk.next = rules.firstPage
    this.walk = walk
    this.rules = rules
    this.places = walk.places
    this.watching = watching
    this.pageStart = walk.places.first
  }

  get distinct(): number {
    return this.places.distinct
  }

  /** Whether looks back prove anything: of a full walk, by a total, and not of a list in one answer, which cannot have moved. */
  get isCountable(): boolean {
    return this.rules.kind === 'full' && this.walk.counted && this.answers > 1
  }

  /** Whether every item that came twice is explained. */
  get isSettled(): boolean {
    return !this.unsettled && this.#unexplained <= this.found
  }

  /** Whether it asked again for as many pages as the list has: then it proves nothing, and only where to read on is still looked for. */
  get isUsedUp(): boolean {
    return this.#askedAgain >= this.walk.lastPage
  }

  /** The next page in list order; null: the walk was resumed, and has to rejoin before it reads on. */
  *askNext(page: number): Steps<Answer | null> {
    const reply = yield { page, why: 'forward' }
    return reply === 'resumed' ? this.#noteResumed() : this.#note(reply)
  }

  /** Asks for a page again; null: it is used up. */
  *askAgain(page: number, why: Why): Steps<Answer | null> {
    if (!this.isUsedUp) return yield* this.ask(page, why)
    this.moved = true
    this.unsettled = true
    return null
  }

  /** Asks for a page again, also where it is used up. */
  *ask(page: number, why: Why): Steps<Answer> {
    for (;;) {
      this.#askedAgain++
      const reply = yield { page, why }
      if (reply !== 'resumed') return this.#note(reply)
      this.#askedAgain--
      this.#noteResumed()
    }
  }

  #noteResumed(): null {
    this.wasResumed = true
    // To find where a walk stopped takes a page more, that does not count.
    this.#askedAgain--
    return null
  }

  /** What every answer says, whatever was asked. */
  #note(answer: Answer): Answer {
    const { page, ids, items, total, next, lastPage } = answer
    const { walk } = this
    // Those of a page in list order count as news as long as they have no place.
    this.places.see(ids)
    this.answers++
    walk.counted &&= total !== null
    const first = walk.counted ? (walk.totals.first ?? total) : null
    const rise = this.total === null ? 0 : (total ?? 0) - (walk.totals.last ?? 0)
    this.rises += Math.max(0, rise)
    this.#hasFallen ||= walk.counted && rise < 0
    walk.totals = { first, last: walk.counted ? total : null }
    walk.totalChanged ||= total !== first && walk.counted
    walk.lastPage = lastPage ?? Math.max(walk.lastPage, page)
    this.total ??= total
    this.moved ||= total !== null && total !== this.total
    if (next !== null) {
      const isUsual = items === ids.length && (this.perPage === null || this.perPage === items)
      this.perPage = isUsual ? items : 0
    }
    return answer
  }

  /** Takes the next page in list order. Its repeated items count against the rise of the total. Returns whether an unread item may have slid onto an earlier page. */
  take(answer: Answer): boolean {
    const { ids, items, total } = answer
    const again = ids.filter((id) => this.places.isUpTo(id, this.frontier.at)).length
    const twice = items - ids.length
    const rise = riseFrom(this.frontier, total)
    // Repeats may fill more than a page, so what is left of a rise explains those of the next one.
    const paid = Math.max(0, rise) + this.#carried
    this.#carried = ids.every((id) => this.places.of(id) !== undefined) ? Math.max(0, paid - again) : 0
    this.explained += Math.min(again, paid)
    this.#unexplained += Math.max(0, again - paid) + twice
    this.repeated += again + twice
    this.walk.repeatedAcrossPages ||= again > 0
    this.moved ||= again + twice > 0
    this.pageStart = this.places.next
    const mayHaveSlid = again === 0 && this.#hasFallen
    this.#append(answer, 0)
    return mayHaveSlid
  }

  /** Takes the pages of a rejoin, from the one with the last item that was read before on. `found`: that item; null: it is on none of them. No pages: the list has ended before. */
  takeBehind(pages: readonly Answer[], found: Found | null): void {
    const before = this.frontier
    const [first] = pages
    if (!first) {
      this.walk.next = null
      return
    }
    const shift = found && pages.length === 1 ? found.index - before.index : null
    if (shift !== 0) this.moved = true
    if (shift === null || shift > 0 || first.page !== before.page) this.walk.repeatedAcrossPages = true
    this.repeated += Math.max(0, shift ?? 0)
    this.#unexplained += Math.max(0, (shift ?? 0) - Math.max(0, riseFrom(before, first.total)))
    if (found) this.insert(first.ids.slice(0, found.at + 1))
    for (const page of pages) this.#append(page, page === first && found ? found.at + 1 : 0)
    this.#carried = 0
  }

  /** The items of a page in list order, from this one on; its last one is the new frontier. */
  #append({ page, ids, total, next, lastPage }: Answer, from: number): void {
    this.places.append(ids.slice(from))
    const at = this.places.of(ids.at(-1))
    const index = (page - 1) * (this.perPage ?? 0) + ids.length - 1
    if (at !== undefined) this.frontier = { page, at, index, total }
    this.#hasFallen = false
    this.walk.next = next
    this.isShort = next === null && (lastPage ?? 0) > page
  }

  /** Puts the new items of a page that was asked for again where they belong. Returns how many they are. */
  insert(ids: readonly string[], where = this.pageStart): number {
    const count = this.places.insert(ids, where)
    this.moved ||= count > 0
    return count
  }

  /** Looks on a page for the last item that was read up to the frontier; null: there is none. */
  locate({ page, ids }: Answer, frontier: Frontier): Found | null {
    const located = this.places.locate(ids, frontier.at)
    const index = (page - 1) * (this.perPage || ids.length)
    return located && { ...located, index: index + located.at + located.gap }
  }
}

/** How much the total rose since then; below 0 if it fell, 0 if one is missing. */
function riseFrom(before: Frontier, total: number | null): number {
  return total === null ? 0 : total - (before.total ?? total)
}
