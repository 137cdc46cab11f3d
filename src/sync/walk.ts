import { JobError } from '../errors.ts'
import { jobName } from '../text.ts'
import { type Answer, type Question, type Steps, WalkFacts, type WalkRules } from './coverage/question.ts'
import { type Reading, readList } from './coverage/read-list.ts'
import { identifyItems, isRejectId, type ListedItem } from './items.ts'
import type { LedgerEntry, Walk } from './store.ts'
import type { Job, Notice, Observe, Page, PageSource, RequestEvent } from './types.ts'

/** A walk's reading of its list, as far as it has come. It lives in memory alone: the page ledger has all that it was told. */
export class WalkReading {
  /** What it asks for next; null: the list is read. */
  question: Question | null = null
  /** What came of it; null while it reads. */
  result: Reading | null = null
  /** Why the last answer began a further pass; null: it did not. */
  again: string | null = null
  answers = 0
  /** Distinct items with a usable key. */
  keyed = 0
  /** When a page that was asked for again first began with an item that is new to its pass, epoch milliseconds; null: none did. */
  beganAnewAt: number | null = null
  #facts = new WalkFacts()
  #steps: Steps<Reading>
  #wasResumed = false

  /** @param name The list, in errors. */
  constructor(rules: WalkRules, name: string) {
    this.#steps = readList(rules, this.#facts, name, (why) => {
      this.again = why
    })
    this.#note(this.#steps.next())
  }

  /** Distinct items. */
  get items(): number {
    return this.#facts.places.size
  }

  get passes(): number {
    return this.#facts.pass
  }

  has(id: string): boolean {
    return this.#facts.places.has(id)
  }

  /** Takes the answer to its question, that was read at this time; returns its line of the page ledger. Throws BAD_RESPONSE if the list does not end. */
  take(answer: Answer, at: number): LedgerEntry {
    if (!this.question) throw new Error('a walk that asks for no page takes no answer')
    const { pass, why } = this.question
    const [first] = answer.ids
    const beginsAnew = why !== 'forward' && first !== undefined && this.#facts.places.of(first) === undefined
    if (beginsAnew) this.beganAnewAt ??= at
    this.keyed += answer.ids.filter((id) => !this.has(id) && !isRejectId(id)).length
    const resumed = this.#wasResumed
    this.#wasResumed = false
    this.again = null
    this.#note(this.#steps.next(answer))
    return { ...answer, ordinal: ++this.answers, pass, why, resumed, at }
  }

  /** Tells that another process goes on from here. To say so twice before an answer changes nothing. */
  resume(): void {
    if (!this.question || this.#wasResumed) return
    this.#wasResumed = true
    this.#note(this.#steps.next('resumed'))
  }

  #note(step: IteratorResult<Question, Reading>): void {
    this.question = step.done ? null : step.value
    if (step.done) this.result = step.value
  }
}

export type WalkEvent =
  | RequestEvent
  | { kind: 'page'; page: Page; result: PageResult; itemsInWalk: number }
  /** The list is read once more. */
  | { kind: 'pass'; why: string; pass: number }

/** What is reported of a walk that begins or continues. */
export type StartedWalk = Pick<Walk, 'id' | 'checkpoint' | 'resumed' | 'rowsSeen'>

export interface ReadOptions {
  job: Job
  reading: WalkReading
  source: PageSource
  /** Takes each answer, in order: a sync writes it, a verification compares it. */
  write: (answer: ReadPage) => Promise<PageResult>
  betweenPages?: BetweenPages
  /** The time that an answer is written with, epoch milliseconds. */
  now: () => number
  observe: Observe<WalkEvent>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/** Work that may run between two pages, while no request is under way: a refresh. */
export interface BetweenPages {
  isDue(): boolean
  run(): Promise<void>
}

/** An answer, with what the walk makes of it. */
export interface ReadPage {
  page: Page
  items: readonly ListedItem[]
  /** The ids that the walk meets for the first time. */
  newToWalk: ReadonlySet<string>
  entry: LedgerEntry
  /** The next page in list order; null: the pass has reached the end of the list. */
  nextPage: number | null
}

/** What one page changed. */
export interface PageResult {
  added: number
  changed: number
  notices: readonly Notice[]
}

/**
 * Reads a list to its end, page by page: only an answer says which page is next. That one is requested before the answer is written, since
 * reading and writing the store block the process; but after a refresh that runs between the two, else an older answer could overwrite
 * newer rows. Throws on the first page that cannot be fetched; what was written stays.
 */
export async function readWalk(options: ReadOptions): Promise<Reading> {
  const { job, reading, source, write, betweenPages, now, observe, yieldToEventLoop, signal } = options
  const closing = new AbortController()
  const untilClosed = AbortSignal.any([signal, closing.signal])
  const fetch = (page: number) => source.fetchPage(page, observe, untilClosed)
  let pending: Promise<Page> | null = null
  try {
    while (reading.question) {
      const page = await (pending ?? fetch(reading.question.page))
      pending = null
      const items = identifyItems(job, page)
      const newToWalk = new Set(items.flatMap(({ id }) => (reading.has(id) ? [] : [id])))
      const entry = reading.take(answerOf(page, items), now())
      // It is another one now.
      const { question } = reading
      const givesWay = betweenPages?.isDue() === true
      if (question && !givesWay) {
        pending = fetch(question.page)
        // Its failure is thrown by the next turn; it is no unhandled rejection meanwhile.
        pending.catch(() => {})
        await yieldToEventLoop()
      }
      const result = await write({ page, items, newToWalk, entry, nextPage: question?.next ?? null })
      observe({ kind: 'page', page, result, itemsInWalk: reading.items })
      if (reading.again) observe({ kind: 'pass', why: reading.again, pass: reading.passes })
      if (givesWay) await betweenPages.run()
    }
  } finally {
    // Whatever is under way is waited for, so that its cost is counted.
    closing.abort()
    await pending?.catch(() => {})
  }
  if (!reading.result) throw new Error('a walk without a page to ask has not ended')
  return reading.result
}

function answerOf({ number, next, total, lastPage, ...page }: Page, items: readonly ListedItem[]) {
  return { page: number, ids: items.map(({ id }) => id), items: page.items.length, total, next, lastPage }
}

/** The error of a list that ends too early in every pass. */
export function incompleteError(job: Job, { why, isShort }: Pick<Reading, 'why' | 'isShort'>): JobError {
  // `total: ignore` does not help if its own pages say that there are more.
  const advice = isShort
    ? 'its last page has no next link but says that there are more pages, so something is wrong with the API'
    : `if the API counts items that it does not list, set ${totalKey(job)}: ignore`
  return new JobError(
    'INCOMPLETE',
    `${jobName(job)}: in every pass, the list ended before its own total: ${why}. ` +
      `What came is in the mirror and nothing was removed; ${advice}`,
  )
}

/** The key of the configuration that says whether the list can be counted by its total. */
export function totalKey({ collection }: Job): string {
  return `collections.${collection.name}.total`
}
