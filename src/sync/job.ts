import { InterruptedError, type KnownError, MirrorError } from '../errors.ts'
import { inWords, jobName } from '../text.ts'
import { READING_VERSION, WalkReading, type WalkResult } from './coverage/read-list.ts'
import { createPageTimes, type PageTimes, writePage } from './page-writer.ts'
import { Refresher, type RefreshEvent } from './refresh/refresher.ts'
import type { RefreshPolicy } from './refresh/share.ts'
import { afterFullWalk, scopeText, stateOf } from './refresh/state.ts'
import { isWalkedWhole } from './refresh/worth.ts'
import { decideRemovals, heldError, type RemovalRules, whyUntrusted } from './removals.ts'
import { chooseWalk, filtersText, replay } from './resume.ts'
import { type BusyEvent, countTraffic, noTraffic, runError, runOutcome, withLease } from './run.ts'
import type { Lease, Removals, Run, RunRecord, RunTraffic, Store, Walk } from './store.ts'
import type { Job, Observe, PageSource, Trigger, WalkOutcome, WalkPlan } from './types.ts'
import type { VerifyResult } from './verify.ts'
import { incompleteError, readWalk, totalKey, type WalkEvent } from './walk.ts'

/** What happens while a job runs, or is compared with its list. */
export type JobEvent =
  | WalkEvent
  | RefreshEvent
  | BusyEvent
  /** A walk begins or continues. */
  | { kind: 'start'; walk: Walk }
  | { kind: 'finish'; result: JobResult }
  | { kind: 'verified'; result: VerifyResult }

export interface JobOptions {
  job: Job
  plan: WalkPlan
  trigger: Trigger
  /** Called after the job was taken, so that the state of its token is fresh. */
  source: () => Promise<PageSource>
  store: Store
  maxPasses: number
  removals: RemovalRules
  /** How the job is refreshed between the pages of a walk; null: not at all. */
  refresh: RefreshPolicy | null
  /**
   * A refresh instead of the walk, of a list that can be refreshed. `newest`: now, and without older pages. `due`: only if one is
   * due, and with the older pages that are due.
   */
  instead?: 'newest' | 'due' | undefined
  /** Whether to wait for a job that another process has, instead of reporting it as busy. */
  waitForOwner: boolean
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  yieldToEventLoop: () => Promise<void>
  observe: Observe<JobEvent>
  signal: AbortSignal
}

/** How a job ended. `run` is null if there is no line of `sync_runs`, and if the mirror failed before it could report the run. */
export interface JobResult extends WalkOutcome {
  job: Job
  trigger: Trigger
  /** Null if none began: the job was refreshed instead, or nothing was sent. */
  walk: Walk | null
  run: (RunRecord & RunTraffic) | null
  /** True if the job was refreshed instead of walked, or was to be and nothing was due any more. The refresh has an event of its own. */
  isInstead: boolean
  /** Distinct items that the walk has seen, those of earlier runs of it too; an item on two pages counts once. */
  items: number
  /** Its line of `sync_runs`. */
  runId?: number
  error: KnownError | null
  /** Of a run that succeeded: removals that wait for a decision. */
  heldBack: KnownError | null
}

/** Runs a job once: resumes its open walk or begins one, and writes a line of `sync_runs`. Never throws. */
export async function runJob(options: JobOptions): Promise<JobResult> {
  const { job, trigger, observe, signal } = options
  const result: JobResult = {
    job,
    trigger,
    walk: null,
    run: null,
    items: 0,
    isInstead: false,
    coverage: null,
    untrusted: null,
    error: null,
    heldBack: null,
  }
  try {
    await withLease(options, (lease, source, heard) => {
      const state = stateOf(lease.refresh, scopeText(job), options.now())
      const times = createPageTimes(lease, options.now, state?.settledAt)
      const tools = { ...options, observe: heard, lease, times, source }
      const refresher = state && new Refresher({ ...tools, policy: options.refresh }, state)
      return refreshOrWalk({ ...tools, refresher, result })
    })
  } catch (error) {
    // The first error is the cause, even if writing the run's line failed, too.
    result.error ??= runError(error, signal)
    // A short list is walked instead of refreshed. If that walk did not begin, it is tried again when a refresh is due.
    if (options.instead === 'due' && !result.walk) result.trigger = 'refresh'
  }
  observe({ kind: 'finish', result })
  return result
}

/** A job that this process has, and what it comes to. */
interface TakenJob extends Omit<JobOptions, 'source'> {
  lease: Lease
  source: PageSource
  times: PageTimes
  /** Null until the list was read whole. */
  refresher: Refresher | null
  result: JobResult
}

async function refreshOrWalk(own: TakenJob): Promise<void> {
  const { lease, refresher, instead, result } = own
  if (!instead || !refresher) return walkList(own, false)
  const isAsked = instead === 'newest'
  const reading = await refresher.takeNext(isAsked)
  // A short list is walked, which costs the same and proves more; and so is one that cannot be stored.
  const isWalked = lease.refusal !== null || isWalkedWhole(refresher.state)
  if (isWalked && reading) return walkList(own, true)
  result.isInstead = true
  result.trigger = 'refresh'
  // None is due: another process has done it since the caller looked, or has used up the share.
  if (!reading) return
  const { runId, run, error } = await refresher.refresh(reading, isAsked)
  Object.assign(result, { runId, run, error })
  if (!error) await prune(own)
}

/**
 * Resumes the open walk of the list or begins one, reads it to its end, and judges what it did not show.
 * @param isRefresh Whether it takes the place of a refresh, and is charged to the share of refreshes.
 */
async function walkList(own: TakenJob, isRefresh: boolean): Promise<void> {
  const { job, lease, plan, trigger, times, store, maxPasses, refresher, instead, observe, signal, result } =
    own
  const { total, filters } = job.collection
  const { resume, abandon } = chooseWalk(await store.openWalks(job), plan, job, own.now())
  const played = resume && (await replay(resume, own))
  const { kind, firstPage } = plan
  const { lastCoverage } = lease
  const { runId, walk } = await store.beginRun(lease, {
    trigger,
    plan,
    filters: filtersText(filters),
    rules: { version: READING_VERSION, kind, firstPage, total, maxPasses, lastCoverage },
    resume: played ? resume.id : null,
    abandon: resume && !played ? [...abandon, resume.id] : abandon,
    brief: instead !== undefined,
  })
  const reading = played && walk.resumed ? played : new WalkReading(walk.rules, jobName(job))
  if (walk.resumed) reading.resume()
  const traffic = noTraffic()
  const run: Run = { id: runId, traffic }
  Object.assign(result, { walk, items: walk.rowsSeen, runId })
  observe({ kind: 'start', walk })
  try {
    // The mirror cannot hold this list. A person has to act, so the run's line shows it.
    if (lease.refusal) throw lease.refusal
    const read = await readWalk({
      ...own,
      reading,
      write({ page, items, newToWalk, entry, nextPage }) {
        const answer = { walk, entry, newToWalk: newToWalk.size, nextPage }
        return writePage(store, lease, run, { page, items, at: entry.at, answer })
      },
      betweenPages: {
        isDue: () => refresher?.isDue() ?? false,
        run: async () => refresher?.runBetweenPages(run),
      },
      now: times.ofWalk,
      observe(event) {
        countTraffic(traffic, event)
        if (event.kind === 'page') result.items = event.itemsInWalk
        observe(event)
      },
    })
    await endWalk(own, { walk, reading, run, read })
  } catch (error) {
    result.error = runError(error, signal)
  }
  // A list that has become long meanwhile is walked as by its schedule: its pages would use up the share for hours.
  if (isRefresh && isWalkedWhole(reading)) await refresher?.charge(traffic.requests - 1)
  const outcome = runOutcome(result.error, result.heldBack, traffic)
  const record = await store.finishRun(run, outcome)
  if (outcome.status === 'refused') result.walk = null
  else result.run = { ...record, ...traffic }
  if (isRefresh && result.error) await refresher?.endFailedWalk()
  // Also where a list is refused for months; not where the mirror fails, or a signal stops it.
  if (!(result.error instanceof MirrorError || result.error instanceof InterruptedError)) await prune(own)
}

/** A walk that was read to its end. */
interface ReadWalk {
  walk: Walk
  reading: WalkReading
  run: Run
  read: WalkResult
}

/**
 * Removes rows that left the list, or holds them back, and completes the walk. If the process dies before, the next
 * one resumes the walk without a request and judges it again.
 */
async function endWalk(own: TakenJob, { walk, reading, run, read }: ReadWalk): Promise<void> {
  const { job, lease, plan, store, times, refresher, removals: rules, result } = own
  const { coverage } = read
  const isIncomplete = read.kind === 'incomplete'
  const isFull = walk.kind === 'full'
  // A full backfill has read what an open walk of a sync would: until its end a run may still resume that one.
  const open = isFull && plan.origin === 'backfill' ? await store.openWalks(job) : []
  for (const over of isIncomplete ? [walk] : open.filter(({ origin }) => origin === 'sync'))
    await store.closeWalk(lease, { walkId: over.id, run, outcome: null, removals: 'none', refresh: null })
  if (isIncomplete) throw incompleteError(job, read)
  let untrusted = isFull ? whyUntrusted(read, walk.newRejects) : null
  if (untrusted !== null && coverage === 'drifted' && lease.lastCoverage === 'drifted')
    untrusted += `; if its total is never the number of items that are listed, set ${totalKey(job)}: ignore`
  let removals: Removals = 'none'
  if (isFull && untrusted === null) {
    const { keyed } = reading
    const isSeen = (id: string) => reading.has(id)
    const rule = { walkId: walk.id, keyed, isSeen, atOnce: read.cameAtOnce }
    const missing = await store.findMissing(lease, rule)
    removals = decideRemovals({ ...missing, listed: Math.min(keyed, read.distinct) }, rules)
  }
  const { lastPage, totals, grewAt } = reading
  const complete = {
    scope: scopeText(job),
    startedAt: walk.startedAt,
    endedAt: times.ofWalk(),
    coverage,
    lastPage,
    totals,
    grewAt,
    rowsAdded: { first: walk.rowsAddedBefore, last: lease.rowsAdded },
  }
  const refresh = isFull ? afterFullWalk(refresher?.state ?? null, complete, job.collection.newest) : null
  const outcome = { coverage, untrusted }
  const { heldBack } = await store.closeWalk(lease, { walkId: walk.id, run, outcome, removals, refresh })
  Object.assign(result, outcome, { heldBack: heldBack && heldError(job, heldBack, untrusted) })
}

const DAY_MS = 86_400_000

/**
 * Deletes what is old, unless our clock and the API's are more than a day apart, or it has not answered: by a wrong clock everything may
 * seem old.
 */
async function prune({ job, store, source, observe, result }: TakenJob): Promise<void> {
  const ahead = source.clockAhead?.() ?? (result.error === null ? 0 : null)
  if (ahead === null) return
  if (Math.abs(ahead) <= DAY_MS) return store.prune(job)
  const message =
    `this machine's clock is ${inWords(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} the API's, so nothing old is deleted; ` +
    'set it (NTP): schedules and as_of go by it'
  observe({ kind: 'notices', page: 1, notices: [{ event: 'clock_differs', message }] })
}
