import type { WalkRules } from '../../../src/sync/coverage/account.ts'
import { advance } from '../../../src/sync/coverage/advance.ts'
import { expecting, nextPass, startCheckpoint } from '../../../src/sync/coverage/beginning.ts'
import { expectedMissed } from '../../../src/sync/coverage/expected-missed.ts'
import { resumeReading } from '../../../src/sync/coverage/overlap.ts'
import { judgePass } from '../../../src/sync/coverage/verdict.ts'
import type { Coverage, Item, Page } from '../../../src/sync/types.ts'
import { createArrayLedger } from './array-ledger.ts'
import type { ServedPage } from './serving.ts'

/** What a walk reads: the pages of a list as it stands, and what happens to it meanwhile. */
export interface Walked {
  pageAt(number: number): ServedPage
  /** Before each request; `reading` is the page that is read on with. */
  beforeRequest(request: number, reading: number | null): void
  perPage: number
  /** Before this request the walk's process died; what happens until the next one begins. */
  interruptedAt: number | null
  interrupt(): void
  /** Whether the job's last walk saw the list move. */
  expectsMoves: boolean
  maxPasses: number
}

export interface WalkResult {
  coverage: Coverage | null
  /** What it says itself. */
  expectedMissed: number | null
  requests: number
  passes: number
  /** By what they were asked for. */
  asked: Record<string, number>
  has(id: number): boolean
}

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }

/** The page loop, with nothing but its decisions. */
export function walkList(walked: Walked): WalkResult {
  const ledger = createArrayLedger()
  const asked: Record<string, number> = {}
  let distinct = 0
  let checkpoint = expecting(startCheckpoint(1), { ...walked, doubtsTotal: false })
  for (let request = 1; ; request++) {
    if (request === walked.interruptedAt) {
      walked.interrupt()
      checkpoint = resumeReading(RULES, JSON.parse(JSON.stringify(checkpoint)))
    }
    walked.beforeRequest(request, checkpoint.nextPage)
    const { ask } = checkpoint
    if (ask) {
      asked[ask.why] = (asked[ask.why] ?? 0) + 1
      const { page, ids } = pageOf(walked, ask.page)
      const sighting = ledger.sight(checkpoint, ids)
      checkpoint = advance(RULES, checkpoint, page, sighting)
      ledger.save(sighting, ids)
      distinct += sighting.newToWalk
    }
    if (checkpoint.ask) continue
    const verdict = judgePass(checkpoint, distinct, { ...RULES, maxPasses: walked.maxPasses })
    if (verdict.kind !== 'again') {
      const coverage = verdict.kind === 'complete' ? verdict.coverage : null
      return {
        coverage,
        expectedMissed: expectedMissed(coverage, checkpoint.account),
        requests: ledger.answers,
        passes: checkpoint.pass,
        asked,
        has: ledger.has,
      }
    }
    checkpoint = nextPass(checkpoint)
  }
}

function pageOf({ pageAt, perPage }: Walked, number: number): { page: Page; ids: readonly number[] } {
  const { ids, total } = pageAt(number)
  const lastPage = Math.max(Math.ceil(total / perPage), 1)
  const page = {
    number,
    items: itemsOf(ids.length),
    next: number < lastPage ? number + 1 : null,
    total,
    lastPage,
    paginated: true,
    announcedLimit: null,
  }
  return { page, ids }
}

const ITEMS = new Map<number, Item[]>()

function itemsOf(count: number): Item[] {
  const items = ITEMS.get(count) ?? Array.from({ length: count }, () => ({ text: '', value: null }))
  ITEMS.set(count, items)
  return items
}
