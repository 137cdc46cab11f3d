import { type Answer, newWalkFacts, type Reply, type WalkFacts } from '../../../src/sync/coverage/question.ts'
import {
  type ListQuestion,
  type Reading,
  readList,
  type WalkRules,
} from '../../../src/sync/coverage/read-list.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import type { ServedPage } from './moving-list.ts'

/** What a walk reads: the pages of a list, and events meanwhile. */
export interface Walked {
  pageAt(number: number): ServedPage
  /** Called before each request; `reading`: the next page in list order. */
  beforeRequest(request: number, reading: number | null): void
  perPage: number
  /** The walk's process dies before this request; `interrupt` plays what happens until the next one starts. */
  interruptedAt: number | null
  interrupt(): void
  /** How the job's last walk ended. */
  lastCoverage: Coverage | null
  maxPasses: number
}

export interface WalkResult {
  coverage: Coverage | null
  requests: number
  passes: number
  /** Requests by reason. */
  asked: Record<string, number>
  has(id: number): boolean
}

/** A walk as far as it has come: without the page loop, its decisions alone. */
class OpenWalk {
  /** Null: it is over. */
  question: ListQuestion | null = null
  reading: Reading | null = null
  readonly facts: WalkFacts = newWalkFacts()
  #steps: Generator<ListQuestion, Reading, Reply>

  constructor(lastCoverage: Coverage | null, maxPasses: number) {
    const rules: WalkRules = { kind: 'full', firstPage: 1, total: 'check', maxPasses, lastCoverage }
    this.#steps = readList(rules, this.facts, 'a list')
    this.#note(this.#steps.next())
  }

  /** Takes the answer to its question, or that its process has died. */
  take(reply: Reply): void {
    this.#note(this.#steps.next(reply))
  }

  #note(step: IteratorResult<ListQuestion, Reading>): void {
    this.question = step.done ? null : step.value
    this.reading = step.done ? step.value : null
  }
}

/** Walks the list to its end. */
export function walkList(walked: Walked): WalkResult {
  let walk = new OpenWalk(walked.lastCoverage, walked.maxPasses)
  const ledger: Reply[] = []
  const asked: Record<string, number> = {}
  for (let request = 1; ; request++) {
    if (request === walked.interruptedAt) {
      walked.interrupt()
      walk = new OpenWalk(walked.lastCoverage, walked.maxPasses)
      for (const reply of ledger) walk.take(reply)
      ledger.push('resumed')
      walk.take('resumed')
    }
    const { question } = walk
    if (!question) throw new Error('a walk without a page to ask has not ended')
    walked.beforeRequest(request, question.next)
    asked[question.why] = (asked[question.why] ?? 0) + 1
    const answer = answerOf(question.page, walked.pageAt(question.page), walked.perPage)
    ledger.push(answer)
    walk.take(answer)
    if (!walk.reading) continue
    const { coverage, passes } = walk.reading
    const { places } = walk.facts
    return { coverage, requests: request, passes, asked, has: (id) => places.has(String(id)) }
  }
}

/** A page as a server with a length shows it. */
function answerOf(page: number, { ids, total }: ServedPage, perPage: number): Answer {
  const lastPage = Math.max(Math.ceil(total / perPage), 1)
  return {
    page,
    ids: ids.map(String),
    items: ids.length,
    total,
    next: page < lastPage ? page + 1 : null,
    lastPage,
  }
}
