import { advance } from '../../../src/sync/coverage/advance.ts'
import { nextPass, startCheckpoint, type WalkRules } from '../../../src/sync/coverage/state.ts'
import { resumeReading } from '../../../src/sync/coverage/step-back.ts'
import { expectedMissed, judgePass } from '../../../src/sync/coverage/verdict.ts'
import type { ListedItem } from '../../../src/sync/items.ts'
import { createSeenItems, ledgerEntry, matchPage } from '../../../src/sync/seen.ts'
import type { Coverage, Item, Page } from '../../../src/sync/types.ts'
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
  /** The job's last walk saw the list move. */
  lastWalkMoved: boolean
  maxPasses: number
}

export interface WalkResult {
  coverage: Coverage | null
  /** The walk's own estimate. */
  expectedMissed: number | null
  requests: number
  passes: number
  /** Requests by reason. */
  asked: Record<string, number>
  has(id: number): boolean
}

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }

/** The page loop, reduced to its decisions. */
export function walkList(walked: Walked): WalkResult {
  const seen = createSeenItems(0)
  const asked: Record<string, number> = {}
  let checkpoint = startCheckpoint(1, walked.lastWalkMoved ? { coverage: 'repaired', totalOff: null } : null)
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
      const match = matchPage(ids.map(listedItem), checkpoint, seen)
      checkpoint = advance(RULES, checkpoint, page, match)
      seen.add(ledgerEntry(page, match))
    }
    if (checkpoint.ask) continue
    const verdict = judgePass(checkpoint, seen.items, { ...RULES, maxPasses: walked.maxPasses })
    if (verdict.kind !== 'again') {
      const coverage = verdict.kind === 'complete' ? verdict.coverage : null
      return {
        coverage,
        expectedMissed: expectedMissed(coverage, checkpoint.state),
        requests: seen.answers,
        passes: checkpoint.pass,
        asked,
        has: (id) => seen.has(String(id)),
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
    announcedLeft: null,
  }
  return { page, ids }
}

const ITEM: Item = { text: '', value: null }

function listedItem(id: number): ListedItem {
  return { item: ITEM, id: String(id), reject: '' }
}

const ITEMS = new Map<number, Item[]>()

function itemsOf(count: number): Item[] {
  const items = ITEMS.get(count) ?? Array.from({ length: count }, () => ITEM)
  ITEMS.set(count, items)
  return items
}
