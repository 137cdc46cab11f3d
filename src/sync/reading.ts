import { type Answer, newWalkFacts, type Reply } from './coverage/question.ts'
import {
  type ListQuestion,
  READING_VERSION,
  type Reading,
  readList,
  type WalkRules,
} from './coverage/read-list.ts'
import { isRejectId } from './items.ts'
import type { LedgerEntry, OpenWalk, Store } from './store.ts'

/** A walk's reading of its list, as far as it has come. It lives in memory alone: the page ledger has all that it was told. */
export class WalkReading {
  /** What it asks for next; null: the list is read. */
  question: ListQuestion | null = null
  /** What came of it; null while it reads. */
  result: Reading | null = null
  /** So far. */
  answers = 0
  /** Distinct items with a usable key. */
  keyed = 0
  /** When a page that was asked for again first began with an item that is new to its pass, epoch milliseconds; null: none did. */
  beganAnewAt: number | null = null
  #facts = newWalkFacts()
  #steps: Generator<ListQuestion, Reading, Reply>
  #wasResumed = false

  /** @param name The list, in errors. */
  constructor(rules: WalkRules, name: string) {
    this.#steps = readList(rules, this.#facts, name)
    this.#note(this.#steps.next())
  }

  /** Distinct items. */
  get items(): number {
    return this.#facts.places.size
  }

  has(id: string): boolean {
    return this.#facts.places.has(id)
  }

  /** Takes the answer to its question, that was read at this time; returns its line of the page ledger. Throws BAD_RESPONSE if the list does not end. */
  take(answer: Answer, at: number): LedgerEntry {
    if (!this.question) throw new Error('a walk that asks for no page takes no answer')
    const { pass, why } = this.question
    const { places } = this.#facts
    const newKeyed = answer.ids.filter((id) => !places.has(id) && !isRejectId(id))
    const [first] = answer.ids
    const beginsAnew = why !== 'forward' && first !== undefined && places.of(first) === undefined
    const resumed = this.#wasResumed
    this.#note(this.#steps.next(answer))
    this.#wasResumed = false
    this.keyed += newKeyed.length
    if (beginsAnew) this.beganAnewAt ??= at
    return { ...answer, ordinal: ++this.answers, pass, why, resumed, at }
  }

  /** Tells that another process goes on from here. To say so twice before an answer changes nothing. */
  resume(): void {
    if (!this.question || this.#wasResumed) return
    this.#wasResumed = true
    this.#note(this.#steps.next('resumed'))
  }

  #note(step: IteratorResult<ListQuestion, Reading>): void {
    this.question = step.done ? null : step.value
    if (step.done) this.result = step.value
  }
}

export interface ReplayOptions {
  store: Pick<Store, 'readLedger'>
  /** The list, in errors. */
  name: string
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/**
 * Plays the stored answers of an open walk through its reading again. Returns null if it would have asked for other pages: the walk has to
 * begin again.
 */
export async function replay(
  { id, rules }: Pick<OpenWalk, 'id' | 'rules'>,
  { store, name, yieldToEventLoop, signal }: ReplayOptions,
): Promise<WalkReading | null> {
  if (rules.version !== READING_VERSION) return null
  const reading = new WalkReading(rules, name)
  for (;;) {
    const answers = await store.readLedger(id, reading.answers)
    for (const { at, resumed, ...answer } of answers) {
      if (resumed) reading.resume()
      if (reading.question?.page !== answer.page || reading.question.why !== answer.why) return null
      const { page, ids, items, total, next, lastPage } = answer
      reading.take({ page, ids, items, total, next, lastPage }, at)
    }
    if (answers.length === 0) return reading
    await yieldToEventLoop()
    signal.throwIfAborted()
  }
}
