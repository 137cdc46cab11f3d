import { WalkReading } from '../../../src/sync/coverage/read-list.ts'
import type { Answer } from '../../../src/sync/coverage/read-pass.ts'
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

/** Walks the list to its end: without the page loop, its decisions alone. */
export function walkList(walked: Walked): WalkResult {
  const { lastCoverage, maxPasses } = walked
  const begin = () =>
    new WalkReading({ kind: 'full', firstPage: 1, total: 'check', maxPasses, lastCoverage }, 'a list')
  let walk = begin()
  const ledger: Answer[] = []
  const asked: Record<string, number> = {}
  for (let request = 1; ; request++) {
    if (request === walked.interruptedAt) {
      walked.interrupt()
      walk = begin()
      for (const answer of ledger) walk.take(answer, 0)
      walk.resume()
    }
    const { question } = walk
    if (!question) throw new Error('a walk without a page to ask has not ended')
    walked.beforeRequest(request, question.next)
    asked[question.why] = (asked[question.why] ?? 0) + 1
    const answer = answerOf(question.page, walked.pageAt(question.page), walked.perPage)
    ledger.push(answer)
    walk.take(answer, 0)
    if (!walk.result) continue
    const { coverage } = walk.result
    return { coverage, requests: request, passes: walk.pass, asked, has: (id) => walk.has(String(id)) }
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
