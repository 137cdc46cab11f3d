import { JobError } from '../errors.ts'
import { jobName } from '../text.ts'
import type { WalkReading, WalkResult } from './coverage/read-list.ts'
import { identifyItems, type ListedItem } from './items.ts'
import type { LedgerEntry } from './store.ts'
import type { Job, Notice, Observe, Page, PageSource, RequestEvent } from './types.ts'

export type WalkEvent =
  | RequestEvent
  | { kind: 'page'; page: Page; result: PageResult; itemsInWalk: number }
  /** The list is read once more. */
  | { kind: 'pass'; why: string; pass: number }

export interface ReadOptions {
  job: Job
  reading: WalkReading
  source: PageSource
  /** Takes each answer, in order: a sync writes it, a verification compares it. */
  write: (answer: ReadPage) => Promise<PageResult>
  /** Work that may run between two pages, while no request is under way. */
  betweenPages: { isDue(): boolean; run(): Promise<void> }
  /** The time that an answer is written with, epoch milliseconds. */
  now: () => number
  observe: Observe<WalkEvent>
  yieldToEventLoop: () => Promise<void>
  signal: AbortSignal
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
export async function readWalk(options: ReadOptions): Promise<WalkResult> {
  const { job, reading, source, write, betweenPages, now, observe, yieldToEventLoop, signal } = options
  const closing = new AbortController()
  const untilClosed = AbortSignal.any([signal, closing.signal])
  const fetch = (page: number) => source.fetchPage(page, observe, untilClosed)
  let pending: Promise<Page> | null = null
  try {
    while (reading.question) {
      const page = await (pending ?? fetch(reading.question.page))
      pending = null
      // Only a backfill may begin past the end of a list without pages.
      if (page.isUnpaged && page.number > 1 && reading.answers > 0) throw unpagedError(job, page)
      const items = identifyItems(job, page)
      const ids = items.map(({ id }) => id)
      const newToWalk = new Set(ids.filter((id) => !reading.has(id)))
      const { number, total, next, lastPage } = page
      const answer = { page: number, ids, items: page.items.length, total, next, lastPage }
      const entry = reading.take(answer, now())
      // It is another one now.
      const { question } = reading
      const givesWay = betweenPages.isDue()
      if (question && !givesWay) {
        pending = fetch(question.page)
        // Its failure is thrown by the next turn; it is no unhandled rejection meanwhile.
        pending.catch(() => {})
        await yieldToEventLoop()
      }
      const result = await write({ page, items, newToWalk, entry, nextPage: reading.next })
      observe({ kind: 'page', page, result, itemsInWalk: reading.items })
      if (reading.again) observe({ kind: 'pass', why: reading.again, pass: reading.pass })
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

function unpagedError(job: Job, { number }: Page): JobError {
  const where = `${jobName(job)} page ${number}`
  return new JobError(
    'BAD_RESPONSE',
    `${where}: got a list without pages: the open walk must start over, so run backfill --restart`,
  )
}

/** The error of a list that ends too early in every pass. */
export function incompleteError(job: Job, { why, isShort }: Pick<WalkResult, 'why' | 'isShort'>): JobError {
  // `total: ignore` does not help if its own pages say that there are more.
  const advice = isShort
    ? 'its last page has no next link but says that there are more pages, so something is wrong with the API'
    : `if the API counts items that it does not list, set ${totalKey(job)}: ignore`
  return new JobError(
    'INCOMPLETE',
    `${jobName(job)}: in every pass, the list ended before its own total: ${why}. Nothing was removed; ${advice}`,
  )
}

/** The key of the configuration that says whether the list can be counted by its total. */
export function totalKey({ collection }: Job): string {
  return `collections.${collection.name}.total`
}
