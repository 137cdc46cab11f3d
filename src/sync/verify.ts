import { InterruptedError, JobError, type KnownError } from '../errors.ts'
import { jobName } from '../text.ts'
import { startCheckpoint } from './coverage/state.ts'
import { type Candidates, createCandidates, type Differences } from './differences.ts'
import { identifyItems, type ListedItem, type StoredItem } from './items.ts'
import type { JobOptions } from './job.ts'
import { whyUntrusted } from './removals.ts'
import { type BusyEvent, runError, withLease } from './run.ts'
import { createSeenItems, type SeenItems } from './seen.ts'
import type { Lease, Store } from './store.ts'
import type { Coverage, Job, Observe, PageSource } from './types.ts'
import { type Answer, type PageHandler, readList, type StartedWalk, type WalkEvent } from './walk.ts'

/** What happens while a list is compared. */
export type VerifyEvent =
  | WalkEvent
  | BusyEvent
  | { kind: 'start'; walk: StartedWalk }
  | { kind: 'verified'; result: VerifyResult }

export interface VerifyOptions
  extends Pick<
    JobOptions,
    'job' | 'source' | 'maxPasses' | 'waitForOwner' | 'now' | 'sleep' | 'yieldToEventLoop' | 'signal'
  > {
  store: Pick<Store, 'acquire' | 'release' | 'noteRetry' | 'lookup' | 'liveKeys'>
  observe: Observe<VerifyEvent>
}

/** `differences` is null if the list could not be read or compared; `error` says why. */
export interface VerifyResult {
  job: Job
  differences: Differences | null
  error: KnownError | null
}

/**
 * Compares a whole list with the mirror, and writes no rows. Looks twice at what seems to differ, since a list may move
 * while it is read. Never throws.
 */
export async function verifyJob(options: VerifyOptions): Promise<VerifyResult> {
  const { job, observe, signal } = options
  const result: VerifyResult = { job, differences: null, error: null }
  try {
    result.differences = await withLease({ ...options, isVerify: true }, async (lease, source) => {
      if (lease.refusal) throw lease.refusal
      return lease.isNeverSynced ? allMissing(source, options) : compare(source, lease, options)
    })
  } catch (error) {
    result.error = withoutSync(job, runError(error, signal))
  }
  observe({ kind: 'verified', result })
  return result
}

/** Rewords errors whose message says that something was written. */
function withoutSync(job: Job, error: KnownError): KnownError {
  if (error instanceof InterruptedError)
    return new InterruptedError('stopped; nothing was written, and the next verify starts again')
  if (error.code !== 'INCOMPLETE') return error
  return new JobError(
    'INCOMPLETE',
    `${jobName(job)}: in every pass, the list ended before its own total, so the mirror cannot be ` +
      'compared with it; a sync says what to do about it',
  )
}

async function compare(source: PageSource, lease: Lease, options: VerifyOptions): Promise<Differences> {
  const candidates = createCandidates(new Set(options.job.collection.ignore))
  const tools = { ...options, source, lease, candidates }
  const first = await readWhole(tools, (answer, stored, seen) => readFirst(candidates, answer, stored, seen))
  await lookAgain(tools)
  let isExtraKnown = first.isTrusted
  if (isExtraKnown) {
    await addUnseen(tools, first.seen)
    if (candidates.hasExtra()) {
      isExtraKnown = (await readWhole(tools, ({ items }) => clear(candidates, items))).isTrusted
      if (isExtraKnown) candidates.confirmExtra()
    }
  }
  const { coverage, seen } = first
  return { items: seen.items, ...candidates.differences(), coverage, isExtraKnown, isNeverSynced: false }
}

/** What a verification works with. */
interface VerifyTools extends Omit<VerifyOptions, 'source'> {
  source: PageSource
  lease: Lease
  candidates: Candidates
}

/** Everything is missing; the first page says how much. */
async function allMissing(source: PageSource, { observe, signal }: VerifyOptions): Promise<Differences> {
  const page = await source.fetchPage(1, observe, signal)
  const items = Math.max(page.total ?? 0, page.items.length)
  const counts = { missing: items, extra: 0, different: 0 }
  return {
    items,
    counts,
    isCut: false,
    listed: [],
    moved: 0,
    coverage: null,
    isExtraKnown: true,
    isNeverSynced: true,
  }
}

type Compare = (answer: Answer, stored: readonly StoredItem[], seen: SeenItems) => void

/** Reads the whole list; compares each answer before it is added to what was seen. */
async function readWhole(
  tools: VerifyTools,
  compareAnswer: Compare,
): Promise<{ coverage: Coverage | null; seen: SeenItems; isTrusted: boolean }> {
  const { job, lease, store, observe, now } = tools
  const seen = createSeenItems(now())
  const checkpoint = startCheckpoint(1, lease.lastWalk)
  const walk = { id: 0, kind: 'full', firstPage: 1, checkpoint, resumed: false, rowsSeen: 0 } as const
  let newRejects = 0
  const handler: PageHandler = {
    async handle(answer) {
      const stored = await store.lookup(job, answer.items)
      compareAnswer(answer, stored, seen)
      newRejects += answer.items.filter(
        (item, index) => 'reject' in item && stored[index]?.state === 'absent',
      ).length
      return { added: 0, changed: 0, rejected: 0, notices: [] }
    },
    async beginPass() {},
    async giveUp() {},
  }
  observe({ kind: 'start', walk })
  const reading = await readList({ ...tools, walk, seen, handler })
  return { coverage: reading.coverage, seen, isTrusted: whyUntrusted(reading, newRejects) === null }
}

function readFirst(
  candidates: Candidates,
  { items, entry: { page, why } }: Answer,
  stored: readonly StoredItem[],
  seen: SeenItems,
): void {
  const isForward = why === 'forward' || why === 'overlap'
  for (const [item, known] of pairs(items, stored))
    candidates.read(item, known, { page, isForward, isSeen: seen.has(item.id) })
}

function clear(candidates: Candidates, items: readonly ListedItem[]): void {
  for (const { id } of items) candidates.clearExtra(id)
}

/** Adds the live rows that the first reading did not meet. */
async function addUnseen(
  { job, store, candidates, yieldToEventLoop, signal }: VerifyTools,
  seen: SeenItems,
): Promise<void> {
  let from: string | null = null
  do {
    const { ids, next }: { ids: string[]; next: string | null } = await store.liveKeys(job, from)
    for (const id of ids) if (!seen.has(id)) candidates.addExtra(id)
    from = next
    await yieldToEventLoop()
    signal.throwIfAborted()
  } while (from !== null)
}

function* pairs(
  items: readonly ListedItem[],
  stored: readonly StoredItem[],
): Generator<[ListedItem, StoredItem]> {
  for (const [index, item] of items.entries()) yield [item, stored[index] ?? { state: 'absent' }]
}

/** How many further pages to search for an item that was pushed along. */
const REACH = 2

/**
 * Asks again for the pages of the candidates, each once, and for the pages after them, where an insertion pushes an item; then for the pages
 * before them, where a deletion in front of it pulls an item.
 */
async function lookAgain(tools: VerifyTools): Promise<void> {
  await lookFrom(tools, (page, last) => Math.max(page, last + 1), REACH)
  await lookFrom(tools, (page) => page - 1, 0)
}

async function lookFrom(
  { job, store, source, candidates, observe, signal }: VerifyTools,
  pageFor: (candidatePage: number, lastAsked: number) => number,
  reach: number,
): Promise<void> {
  let last = 0
  for (;;) {
    const wanted = candidates.nextPage(Math.max(0, last - reach))
    if (wanted === null) return
    const number = pageFor(wanted, last)
    last = Math.max(wanted, last + 1)
    if (number < 1) continue
    const page = await source.fetchPage(number, observe, signal)
    const items = identifyItems(job, page)
    const stored = await store.lookup(job, items)
    for (const [item, known] of pairs(items, stored)) candidates.readAgain(item, known, page.number)
    if (page.next === null && number >= wanted) return
  }
}
