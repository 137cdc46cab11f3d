import { advance } from '../../../src/sync/coverage/advance.ts'
import { resumeReading } from '../../../src/sync/coverage/overlap.ts'
import { nextPass, type Question, startCheckpoint, type WalkRules } from '../../../src/sync/coverage/state.ts'
import { judgePass } from '../../../src/sync/coverage/verdict.ts'
import type { ListedItem } from '../../../src/sync/items.ts'
import { createSeenItems, ledgerEntry, matchPage, type SeenItems } from '../../../src/sync/seen.ts'
import type { Checkpoint, Coverage, Item, Page } from '../../../src/sync/types.ts'
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
  requests: number
  passes: number
  /** Requests by reason. */
  asked: Record<string, number>
  has(id: number): boolean
}

const RULES: WalkRules = { kind: 'full', firstPage: 1, total: 'check' }

/** A walk as far as it has come. */
export interface OpenWalk {
  checkpoint: Checkpoint
  seen: SeenItems
}

/** @param lastWalk How the job's last walk ended; null: it is the first one. */
export function beginWalk(lastWalk: Parameters<typeof startCheckpoint>[1]): OpenWalk {
  return { checkpoint: startCheckpoint(1, lastWalk), seen: createSeenItems(0) }
}

/** The page loop, reduced to its decisions: takes the answer to the walk's question, and returns the verdict on a pass that ends with it. */
export function takeAnswer(
  walk: OpenWalk,
  question: Question,
  served: ServedPage,
  { perPage, maxPasses }: Pick<Walked, 'perPage' | 'maxPasses'>,
): ReturnType<typeof judgePass> | null {
  const page = pageOf(question.page, served, perPage)
  const match = matchPage(served.ids.map(listedItem), walk.checkpoint, walk.seen)
  walk.checkpoint = advance(RULES, walk.checkpoint, page, match)
  walk.seen.add(ledgerEntry(page, match))
  if (walk.checkpoint.ask) return null
  const verdict = judgePass(walk.checkpoint, walk.seen.items, { ...RULES, maxPasses })
  if (verdict.kind === 'again') walk.checkpoint = nextPass(walk.checkpoint)
  return verdict
}

/** Walks the list to its end. */
export function walkList(walked: Walked): WalkResult {
  const walk = beginWalk(walked.lastWalkMoved ? { coverage: 'repaired', totalOff: null } : null)
  const { seen } = walk
  const asked: Record<string, number> = {}
  for (let request = 1; ; request++) {
    if (request === walked.interruptedAt) {
      walked.interrupt()
      walk.checkpoint = resumeReading(RULES, JSON.parse(JSON.stringify(walk.checkpoint)))
    }
    const { ask, nextPage } = walk.checkpoint
    walked.beforeRequest(request, nextPage)
    if (!ask) throw new Error('a walk without a page to ask has not ended')
    asked[ask.why] = (asked[ask.why] ?? 0) + 1
    const verdict = takeAnswer(walk, ask, walked.pageAt(ask.page), walked)
    if (verdict === null || verdict.kind === 'again') continue
    const coverage = verdict.kind === 'complete' ? verdict.coverage : null
    return {
      coverage,
      requests: seen.answers,
      passes: walk.checkpoint.pass,
      asked,
      has: (id) => seen.has(String(id)),
    }
  }
}

function pageOf(number: number, { ids, total }: ServedPage, perPage: number): Page {
  const lastPage = Math.max(Math.ceil(total / perPage), 1)
  return {
    number,
    items: itemsOf(ids.length),
    next: number < lastPage ? number + 1 : null,
    total,
    lastPage,
    paginated: true,
    announcedLimit: null,
    announcedLeft: null,
  }
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
