import { InterruptedError, JobError, type KnownError, toKnownError } from '../errors.ts'
import type { Comparison, Differences } from './comparison.ts'
import { startCheckpoint } from './coverage/beginning.ts'
import { identifyItems } from './items.ts'
import { claim, type JobObserver, type JobOptions, stopped } from './job.ts'
import type { Mirror } from './mirror.ts'
import { whyUntrusted } from './removals.ts'
import { createSeenItems } from './seen-items.ts'
import type { Coverage, Job, PageSource, RunTraffic } from './types.ts'
import { readList, type WalkObserver } from './walk.ts'

/** What becomes of a verification, told as it happens. */
export interface VerifyObserver extends Omit<JobObserver, 'onFinish'>, WalkObserver {
  onFinish(result: VerifyResult): void
}

export interface VerifyOptions
  extends Pick<
    JobOptions,
    'job' | 'source' | 'maxPasses' | 'waitForOwner' | 'now' | 'sleep' | 'turn' | 'signal'
  > {
  mirror: Pick<Mirror, 'claimJob' | 'releaseJob'>
  compare: (job: Job) => Comparison
  observer: VerifyObserver
}

/** `differences` is null where the list could not be read, or the mirror not be compared: `error` says why. */
export interface VerifyResult {
  job: Job
  differences: Differences | null
  error: KnownError | null
}

/**
 * Reads a list whole and holds it against the mirror, into which it writes nothing. Whatever seems to be apart is looked
 * at again before it is called a difference, since a list may move while it is read. Never throws.
 */
export async function verifyJob(options: VerifyOptions): Promise<VerifyResult> {
  const { job, mirror, observer, signal } = options
  const result: VerifyResult = { job, differences: null, error: null }
  try {
    await claim(options)
    try {
      result.differences = await verifyOwned(options)
    } finally {
      await mirror.releaseJob(job)
    }
  } catch (error) {
    result.error = withoutSync(job, signal.aborted ? stopped(signal) : toKnownError(error))
  }
  observer.onFinish(result)
  return result
}

/** What a sync says of these is not true here: nothing came into the mirror. */
function withoutSync({ organization, collection }: Job, error: KnownError): KnownError {
  if (error instanceof InterruptedError)
    return new InterruptedError('stopped; nothing was written, and the next verify begins anew')
  if (error.code !== 'INCOMPLETE') return error
  return new JobError(
    'INCOMPLETE',
    `${organization.name} ${collection.name}: the list ends before its own total, in every pass, so the mirror cannot be ` +
      'compared with it; a sync tells what to do about it',
  )
}

async function verifyOwned(options: VerifyOptions): Promise<Differences> {
  const source = await options.source()
  try {
    const refusal = await source.refusal()
    if (refusal) throw refusal
    const comparison = options.compare(options.job)
    try {
      return await verifyFrom(source, comparison, options)
    } finally {
      await comparison.close()
    }
  } finally {
    await source.close()
  }
}

async function verifyFrom(
  source: PageSource,
  comparison: Comparison,
  options: VerifyOptions,
): Promise<Differences> {
  if (await comparison.isNeverSynced()) return neverSynced(source, options)
  const first = await readWhole(source, comparison, options)
  await lookAgain(source, comparison, options)
  let isExtraTold = first.isTrusted
  if (isExtraTold && (await comparison.suspectUnseen()) > 0) {
    isExtraTold = (await readWhole(source, comparison, options)).isTrusted
    if (isExtraTold) await comparison.confirmExtra()
  }
  const { coverage, items } = first
  return { items, ...(await comparison.differences()), coverage, isExtraTold, isNeverSynced: false }
}

/** Everything is missing, which one page tells as well as all. */
async function neverSynced(source: PageSource, { observer, signal }: VerifyOptions): Promise<Differences> {
  const page = await source.fetchPage(1, observer, signal)
  const items = Math.max(page.total ?? 0, page.items.length)
  const counts = { missing: items, extra: 0, different: 0 }
  return { items, counts, listed: [], moved: 0, coverage: null, isExtraTold: true, isNeverSynced: true }
}

const NO_TRAFFIC: RunTraffic = { requests: 0, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }

async function readWhole(
  source: PageSource,
  comparison: Comparison,
  { job, maxPasses, observer, now, turn, signal }: VerifyOptions,
): Promise<{ coverage: Coverage | null; items: number; isTrusted: boolean }> {
  const seen = createSeenItems(now())
  const walk = await comparison.beginReading(startCheckpoint(1), seen)
  observer.onStart(walk)
  const run = { id: 0, traffic: NO_TRAFFIC }
  const reading = await readList({
    job,
    walk,
    seen,
    replace: [],
    run,
    source,
    mirror: comparison,
    maxPasses,
    observer,
    turn,
    signal,
  })
  const { coverage } = reading
  const isTrusted = whyUntrusted(reading, comparison.newRejects()) === null
  return { coverage, items: seen.items, isTrusted }
}

/** An item that slid is looked for on so many further pages. */
const REACH = 2

/**
 * Asks again for the pages on which the suspects stood, each once, and for the next ones where an item slid behind them.
 * Then for the page before, which is where an item stands when one in front of it has gone.
 */
async function lookAgain(source: PageSource, comparison: Comparison, options: VerifyOptions): Promise<void> {
  await lookFrom(source, comparison, options, (suspect, last) => Math.max(suspect, last + 1), REACH)
  await lookFrom(source, comparison, options, (suspect) => suspect - 1, 0)
}

async function lookFrom(
  source: PageSource,
  comparison: Comparison,
  { job, observer, signal }: VerifyOptions,
  pageFor: (suspectPage: number, lastAsked: number) => number,
  reach: number,
): Promise<void> {
  let last = 0
  for (;;) {
    const suspect = await comparison.nextSuspect(Math.max(0, last - reach))
    if (suspect === null) return
    const number = pageFor(suspect, last)
    last = Math.max(suspect, last + 1)
    if (number < 1) continue
    const page = await source.fetchPage(number, observer, signal)
    await comparison.lookAgain(page.number, identifyItems(job, page))
    if (page.next === null && number >= suspect) return
  }
}
