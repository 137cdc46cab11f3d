import type { Answer } from '../../../src/sync/coverage/pass.ts'
import { WalkReading } from '../../../src/sync/coverage/read-list.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import type { ServedPage } from './moving-list.ts'

/** What a walk reads: the pages of a list, and events meanwhile. */
export interface Walked {
  pageAt(number: number): ServedPage
  /** Called before each request; `reading`: the next page in list order. */
  beforeRequest(reading: number | null): void
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
  has(id: number): boolean
}

/** Walks the list to its end: without the page loop, its decisions alone. */
export function walkList(walked: Walked): WalkResult {
  const { lastCoverage, maxPasses, perPage } = walked
  const begin = () =>
    new WalkReading({ kind: 'full', firstPage: 1, total: 'check', maxPasses, lastCoverage }, 'a list')
  let walk = begin()
  const ledger: Answer[] = []
  while (walk.question) {
    if (ledger.length + 1 === walked.interruptedAt) {
      walked.interrupt()
      walk = begin()
      for (const answer of ledger) walk.take(answer, 0)
      walk.resume()
    }
    walked.beforeRequest(walk.next)
    const page = walk.question?.page ?? 1
    const { ids, total } = walked.pageAt(page)
    const lastPage = Math.max(Math.ceil(total / perPage), 1)
    const next = page < lastPage ? page + 1 : null
    const answer = { page, ids: ids.map(String), items: ids.length, total, next, lastPage }
    ledger.push(answer)
    walk.take(answer, 0)
  }
  const coverage = walk.result?.coverage ?? null
  return { coverage, requests: ledger.length, passes: walk.pass, has: (id) => walk.has(String(id)) }
}
