import { JobError } from '../errors.ts'
import { jobName } from '../text.ts'
import { advance } from './coverage/advance.ts'
import { resumeReading } from './coverage/overlap.ts'
import { type CoverageState, nextPass, type Question, type WalkRules } from './coverage/state.ts'
import { judgePass, totalOff } from './coverage/verdict.ts'
import { identifyItems, type ListedItem } from './items.ts'
import { ledgerEntry, matchPage, type PageMatch, type SeenItems } from './seen.ts'
import type { LedgerEntry, Upsert, Walk } from './store.ts'
import type { Checkpoint, Job, Notice, Observe, Page, PageSource, Reading, RequestEvent } from './types.ts'

export type WalkEvent =
  | RequestEvent
  | { kind: 'page'; page: Page; result: PageResult; itemsInWalk: number }
  /** The list is read once more. */
  | { kind: 'pass'; why: string; pass: number }

/** What is reported of a walk that begins or continues. */
export type StartedWalk = Pick<Walk, 'id' | 'checkpoint' | 'resumed' | 'rowsSeen'>

export interface ReadOptions {
  job: Job
  walk: Pick<Walk, 'kind' | 'firstPage' | 'checkpoint' | 'resumed'>
  /** What the walk has seen so far; each page that is handled is added. */
  seen: SeenItems
  source: PageSource
  handler: PageHandler
  betweenPages?: BetweenPages
  maxPasses: number
  observe: Observe<WalkEvent>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
}

/** Receives the answers of a walk in order: a sync writes them, a verification compares them. */
export interface PageHandler {
  /** Takes an answer, and the checkpoint after it. */
  handle(answer: Answer): Promise<PageResult>
  beginPass(next: Checkpoint): Promise<void>
  /** Called when the list ends before its own total or last page: this walk cannot be completed. */
  giveUp(): Promise<void>
}

/** Work that may run between two pages, while no request is under way: a refresh. */
export interface BetweenPages {
  isDue(): boolean
  run(): Promise<void>
}

export interface Answer {
  page: Page
  items: readonly ListedItem[]
  newToWalk: number
  entry: LedgerEntry
  next: Checkpoint
}

/** What one page changed. */
export interface PageResult {
  added: number
  changed: number
  rejected: number
  notices: readonly Notice[]
  /** The rows that were added or changed; absent where none are written. */
  upserts?: readonly Upsert[]
}

/**
 * Reads a list from the walk's checkpoint to its end, in as many passes as its coverage needs. Throws on the first
 * page that cannot be fetched; the checkpoint before it stays.
 */
export async function readList(options: ReadOptions): Promise<Reading> {
  const { job, walk, seen, handler, maxPasses, observe } = options
  const rules = { kind: walk.kind, firstPage: walk.firstPage, total: job.collection.total }
  let checkpoint = walk.resumed ? resumeReading(rules, walk.checkpoint) : walk.checkpoint
  for (;;) {
    const end = await readPass(options, rules, checkpoint)
    const verdict = judgePass(end, seen.items, { ...rules, maxPasses })
    if (verdict.kind === 'complete') {
      const { pass: passes, state } = end
      const { coverage, why = null } = verdict
      const isWrong = totalOff(coverage, state) === 'again'
      const advice = `: set ${totalKey(job)}: ignore`
      return { coverage, why: isWrong ? `${why}${advice}` : why, passes, state }
    }
    if (verdict.kind === 'incomplete') {
      await handler.giveUp()
      throw incomplete(job, verdict.why, end.state)
    }
    checkpoint = nextPass(end)
    await handler.beginPass(checkpoint)
    observe({ kind: 'pass', why: verdict.why, pass: checkpoint.pass })
  }
}

/**
 * Reads from the checkpoint to the end of the list, page by page: only an answer says which page is next. The next page is
 * requested before this one is written, but matched afterwards, when `seen` holds this page. If a refresh runs between two pages,
 * the next one is requested after the refresh: otherwise an older answer could overwrite newer rows. The rate limiter, the pauses
 * between two tries and the request itself look at the signal; nothing here does.
 */
async function readPass(options: ReadOptions, rules: WalkRules, from: Checkpoint): Promise<Checkpoint> {
  const { job, seen, handler, betweenPages, observe } = options
  const pages = createReadAhead(options)
  let checkpoint = from
  try {
    while (checkpoint.ask !== null) {
      const page = await pages.take(checkpoint.ask)
      const items = identifyItems(job, page)
      const match = matchPage(items, checkpoint, seen)
      const next = advanceOn(job, rules, checkpoint, page, match)
      const givesWay = betweenPages?.isDue() === true
      if (next.ask && !givesWay) await pages.request(next.ask)
      const entry = ledgerEntry(page, match)
      const result = await handler.handle({ page, items, newToWalk: match.newToWalk, entry, next })
      seen.add(entry)
      checkpoint = next
      observe({ kind: 'page', page, result, itemsInWalk: seen.items })
      if (givesWay) await betweenPages.run()
    }
  } finally {
    await pages.close()
  }
  return checkpoint
}

/** Calls `advance`, and names the list in its error. */
function advanceOn(job: Job, rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  try {
    return advance(rules, from, page, match)
  } catch (error) {
    if (!(error instanceof JobError)) throw error
    throw new JobError(error.code, `${jobName(job)}: ${error.message}`)
  }
}

function incomplete(job: Job, why: string, state: CoverageState): JobError {
  return new JobError(
    'INCOMPLETE',
    `${jobName(job)}: in every pass, the list ended before its own total: ${why}. ` +
      `What came is in the mirror and nothing was removed; ${afterIncomplete(job, state)}`,
  )
}

/** Advice about a list that ends too early. `total: ignore` does not help if its own pages say that there are more. */
function afterIncomplete(job: Job, { passShort }: Pick<CoverageState, 'passShort'>): string {
  return passShort
    ? 'its last page has no next link but says that there are more pages, so something is wrong with the API'
    : `if the API counts items that it does not list, set ${totalKey(job)}: ignore`
}

function totalKey({ collection }: Job): string {
  return `collections.${collection.name}.total`
}

/** Fetches the pages of one job, one at a time; the next one is in flight while the caller writes the one before it. */
export function createReadAhead({
  source,
  observe,
  yieldToEventLoop,
  signal,
}: Pick<ReadOptions, 'source' | 'observe' | 'yieldToEventLoop' | 'signal'>) {
  const closing = new AbortController()
  const untilClosed = AbortSignal.any([signal, closing.signal])
  let pending: Promise<Page> | null = null

  return {
    /** Returns the page, which may be in flight already. Throws as `fetchPage` does. */
    async take(question: Question): Promise<Page> {
      const page = await (pending ?? source.fetchPage(question.page, observe, untilClosed))
      pending = null
      return page
    },
    /** Sends the request for the next `take`, which throws its failure. */
    async request(question: Question): Promise<void> {
      pending = source.fetchPage(question.page, observe, untilClosed)
      // Handled by `take`; not an unhandled rejection meanwhile.
      pending.catch(() => {})
      // Reading and writing the store block the process: the request must leave first.
      await yieldToEventLoop()
    },
    /** Aborts the pending request and waits until it settles, so that its cost is counted. */
    async close(): Promise<void> {
      closing.abort()
      await pending?.catch(() => {})
    },
  }
}
