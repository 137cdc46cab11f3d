import { InterruptedError, JobError, type KnownError } from '../errors.ts'
import { jobName } from '../text.ts'
import { type Candidates, createCandidates, type Differences } from './differences.ts'
import { identifyItems, type ListedItem, type StoredItem } from './items.ts'
import type { JobOptions } from './job.ts'
import { whyUntrusted } from './removals.ts'
import { type BusyEvent, runError, withLease } from './run.ts'
import type { Lease, Store } from './store.ts'
import type { Coverage, Job, Observe, PageSource } from './types.ts'
import {
  incompleteError,
  type ReadPage,
  readWalk,
  type StartedWalk,
  type WalkEvent,
  WalkReading,
} from './walk.ts'

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
    result.differences = await withLease({ ...options, isVerify: true }, async (lease, source, hear) => {
      if (lease.refusal) throw lease.refusal
      const heard: VerifyOptions['observe'] = (event) => {
        hear(event)
        observe(event)
      }
      const own = { ...options, observe: heard }
      return lease.isNeverSynced ? allMissing(source, own) : compare(source, lease, own)
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
  const first = await readWhole(tools, (answer, stored) => {
    const { page, why } = answer.entry
    const isForward = why === 'forward' || why === 'rejoin'
    for (const [item, known] of pairs(answer.items, stored))
      candidates.read(item, known, { page, isForward, isSeen: !answer.newToWalk.has(item.id) })
  })
  let isExtraKnown = first.isTrusted
  if (isExtraKnown) {
    await addUnseen(tools, first.reading)
    if (candidates.hasExtra()) {
      const second = await readWhole(tools, ({ items }) => {
        for (const { id } of items) candidates.clearExtra(id)
      })
      isExtraKnown = second.isTrusted
      if (isExtraKnown) candidates.confirmExtra()
    }
  }
  const { coverage, reading } = first
  return { items: reading.items, ...candidates.differences(), coverage, isExtraKnown, isNeverSynced: false }
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

type Compare = (answer: ReadPage, stored: readonly StoredItem[]) => void

/** Reads the whole list, and compares each answer; between two pages it looks again at what seemed to differ. */
async function readWhole(
  tools: VerifyTools,
  compareAnswer: Compare,
): Promise<{ coverage: Coverage | null; reading: WalkReading; isTrusted: boolean }> {
  const { job, lease, store, candidates, maxPasses, observe } = tools
  const { total } = job.collection
  const lastCoverage = lease.lastWalk?.coverage ?? null
  const rules = { kind: 'full', firstPage: 1, total, maxPasses, lastCoverage } as const
  const reading = new WalkReading(rules, jobName(job))
  const checkpoint = { pass: 1, nextPage: 1 }
  let newRejects = 0
  observe({ kind: 'start', walk: { id: 0, checkpoint, resumed: false, rowsSeen: 0 } })
  const result = await readWalk({
    ...tools,
    reading,
    betweenPages: { isDue: () => candidates.nextPage() !== null, run: () => lookAgain(tools) },
    async write(answer) {
      const stored = await store.lookup(job, answer.items)
      compareAnswer(answer, stored)
      const isNewReject = (item: ListedItem, index: number) =>
        'reject' in item && stored[index]?.state === 'absent'
      newRejects += answer.items.filter(isNewReject).length
      return { added: 0, changed: 0, rejected: 0, notices: [] }
    },
  })
  if (result.kind === 'incomplete') throw incompleteError(job, result)
  await lookAgain(tools)
  return { coverage: result.coverage, reading, isTrusted: whyUntrusted(result, newRejects) === null }
}

/** Adds the live rows that the first reading did not meet. */
async function addUnseen(
  { job, store, candidates, yieldToEventLoop, signal }: VerifyTools,
  reading: WalkReading,
): Promise<void> {
  let from: string | null = null
  do {
    const { ids, next }: { ids: string[]; next: string | null } = await store.liveKeys(job, from)
    for (const id of ids) if (!reading.has(id)) candidates.addExtra(id)
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

/**
 * Asks once more for each page that something of differs. At once, so that little can have moved meanwhile: what is not found there
 * again counts as moved.
 */
async function lookAgain({ job, store, source, candidates, observe, signal }: VerifyTools): Promise<void> {
  for (let number = candidates.nextPage(); number !== null; number = candidates.nextPage()) {
    const page = await source.fetchPage(number, observe, signal)
    const items = identifyItems(job, page)
    const stored = await store.lookup(job, items)
    for (const [item, known] of pairs(items, stored)) candidates.readAgain(item, known, number)
    candidates.closePage(number)
  }
}
