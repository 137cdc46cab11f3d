import { JobError } from '../../errors.ts'
import { counted } from '../../text.ts'
import type { Frontier } from './places.ts'
import type { Answer, ListRules, Steps, WalkFacts, Why } from './question.ts'

/** Pages that may be asked for again while little is read: the last page that a list names may be far too high. */
const AT_FIRST = 100
/** So many pages in a row without a new item are a circle. */
const CIRCLE_PAGES = 1000

/** What a pass has read so far, and how it asks for pages. */
export class PassPages {
  /** Whether the list moved during this pass. */
  moved = false
  answers = 0
  /** Items that came again; those of them that a rise of the total explains, and the others. */
  repeated = 0
  explained = 0
  unexplained = 0
  /** Items met again far from where they were read. */
  relocated = 0
  /** Missed items that were found in front, by looks back, and elsewhere. */
  foundInFront = 0
  foundBehind = 0
  foundElsewhere = 0
  /** A page could not be asked for again, or a look back did not find what it looked for. */
  unsettled = false
  /** The list ended before the last page that it names. */
  isShort = false
  /** The first total of this pass. */
  total: number | null = null

  protected walk: WalkFacts
  protected rules: ListRules
  protected name: string
  protected watching: boolean
  /** The next page in list order. */
  protected next: number | null
  protected frontier: Frontier | null = null
  /** The pages read in list order, with the place of their first items. */
  protected starts: { page: number; place: number }[] = []
  /** Items on each page but the last; null: not known yet; 0: pages differ. */
  protected perPage: number | null = null
  protected askedAgain = 0
  protected pagesWithoutNews = 0
  /** Above 0: repeats that the next rise may explain; below 0: a rise that explains the next repeats. */
  protected carried = 0
  /** Where the next look back begins, and how often it was begun in vain. */
  protected anchor: number | null = null
  protected tries = 0
  protected wasResumed = false

  /** @param watching Whether it looks back from the start: the list is known to move. @param name The list, in errors. */
  constructor(walk: WalkFacts, rules: ListRules, firstPage: number, watching: boolean, name: string) {
    this.walk = walk
    this.rules = rules
    this.name = name
    this.watching = watching
    this.next = firstPage
  }

  get distinct(): number {
    return this.walk.places.distinct
  }

  /**
   * Whether items found by asking again explain every item that came twice, and every one that was moved. What looks back found beyond those
   * that were moved may be what a rise explains already.
   */
  get isSettled(): boolean {
    const { unexplained, explained, relocated, foundInFront, foundBehind, foundElsewhere } = this
    const spare = Math.max(0, foundBehind - relocated - explained)
    return !this.unsettled && unexplained <= foundInFront + foundElsewhere + spare && relocated <= foundBehind
  }

  protected assertEnds({ ids, next }: Answer): void {
    const isNews = ids.some((id) => this.walk.places.of(id) === undefined)
    this.pagesWithoutNews = isNews ? 0 : this.pagesWithoutNews + 1
    if (next === null || this.pagesWithoutNews < CIRCLE_PAGES) return
    const circle = counted(CIRCLE_PAGES, 'page')
    throw new JobError(
      'BAD_RESPONSE',
      `${this.name}: the list does not end: the last ${circle} brought nothing new`,
    )
  }

  /** Takes the items of a page in list order; its last one is the new frontier. `isAgain`: those that have a place keep it. */
  protected take({ page, ids, total, next, lastPage }: Answer, isAgain: boolean): void {
    const { places } = this.walk
    places.append(ids, isAgain)
    const at = places.of(ids.at(-1))
    const index = (page - 1) * (this.perPage ?? 0) + ids.length - 1
    if (at !== undefined) this.frontier = { page, at, index, total }
    this.next = next
    this.isShort = next === null && (lastPage ?? 0) > page
  }

  /**
   * Sets the rise of the total against the repeated items. The server counts before it reads, so a rise may show one answer later than its
   * repeats. Repeats may fill more than a page, so what is left of a rise explains those of the next one.
   */
  protected explain(near: number, rise: number): void {
    const late = Math.min(Math.max(this.carried, 0), Math.max(0, rise - near))
    const left = near - Math.max(0, rise) + Math.min(this.carried, 0) + late
    this.unexplained += Math.max(0, left) - late
    this.explained += near + late - Math.max(0, left)
    this.carried = this.pagesWithoutNews > 0 ? left : Math.max(0, left)
  }

  /** Puts the new items of a page that was asked for again where they belong. */
  protected insert(
    ids: readonly string[],
    where = this.starts.at(-1)?.place ?? this.walk.places.first,
  ): number {
    const count = this.walk.places.insert(ids, where)
    if (count > 0) this.moved = true
    return count
  }

  /**
   * Whether looks back prove anything: of a full walk, by a total, and not of a list in one answer, which cannot have moved.
   */
  protected isCountable(): boolean {
    const { kind, total } = this.rules
    return kind === 'full' && total === 'check' && this.walk.counted && this.answers > 1
  }

  /** Asks for a page again; null once a pass asked again for as many as the list has: then it proves nothing. */
  protected *again(page: number, why: Why, isNeeded = true): Steps<Answer | null> {
    if (this.askedAgain < Math.min(this.walk.lastPage, (this.frontier?.page ?? 0) + AT_FIRST)) {
      this.askedAgain++
      return yield* this.ask(page, why)
    }
    if (isNeeded) this.unsettled = true
    return null
  }

  protected *ask(page: number, why: Why): Steps<Answer> {
    for (;;) {
      const reply = yield { page, why, next: this.next }
      if (reply !== 'resumed') return this.note(reply)
      this.wasResumed = true
    }
  }

  /** What every answer says, whatever was asked. */
  protected note(answer: Answer): Answer {
    const { page, ids, total, next, lastPage } = answer
    const walk = this.walk
    walk.places.see(ids)
    this.answers++
    walk.counted &&= total !== null
    walk.firstTotal ??= total
    walk.lastTotal = total ?? walk.lastTotal
    walk.lastPage = lastPage ?? Math.max(walk.lastPage, page)
    this.total ??= total
    if (total !== null && total !== walk.firstTotal) walk.totalChanged = true
    if (total !== null && total !== this.total) this.moved = true
    if (next !== null) this.perPage = perPageAfter(this.perPage, answer)
    return answer
  }
}

function perPageAfter(before: number | null, { ids, items }: Answer): number {
  return items === ids.length && (before === null || before === items) ? items : 0
}
