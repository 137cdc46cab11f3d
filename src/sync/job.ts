import { type KnownError, MirrorError } from '../errors.ts'
import { inWords, jobName } from '../text.ts'
import { READING_VERSION, type Reading } from './coverage/read-list.ts'
import { createPageTimes, type PageTimes, PageWriter } from './page-writer.ts'
import { replay, WalkReading } from './reading.ts'
import { type RefreshEvent, Refresher } from './refresh/refresher.ts'
import type { RefreshPolicy } from './refresh/share.ts'
import { afterFullWalk, rulesOf, type SavedRefresh, savedRefresh, scopeText } from './refresh/state.ts'
import { isWalkedWhole } from './refresh/worth.ts'
import { decideRemovals, heldError, type RemovalRules, whyUntrusted } from './removals.ts'
import { chooseWalk, filtersText } from './resume.ts'
import { type BusyEvent, countTraffic, noTraffic, runError, runOutcome, withLease } from './run.ts'
import type { HeldRemovals, Lease, Removals, Run, RunRecord, RunTraffic, Store, Walk } from './store.ts'
import type { Job, Observe, PageSource, Trigger, WalkOutcome, WalkPlan } from './types.ts'
import { incompleteError, readWalk, totalKey, type WalkEvent } from './walk.ts'

/** What happens while a job runs. */
export type JobEvent =
  | WalkEvent
  | RefreshEvent
  | BusyEvent
  | { kind: 'start'; walk: Walk }
  | { kind: 'finish'; result: JobResult }

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
  /** Resolves when the job may begin; null: at once. */
  mayBegin: () => Promise<void> | null
  observe: Observe<JobEvent>
  signal: AbortSignal
}

/**
 * How a job ended. `walk` is null if none began: the job was refreshed instead (`isInstead`), or nothing was sent and
 * `sync_runs` has no line. `run` is null if there is no line, and if the mirror failed before it could report the run.
 */
export interface JobResult extends WalkOutcome {
  job: Job
  trigger: Trigger
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
    await options.mayBegin()
    await withLease(options, (lease, source) => refreshOrWalk(source, lease, options, result))
  } catch (error) {
    // The first error is the cause, even if writing the run's line failed, too.
    result.error ??= runError(error, signal)
    // A short list is walked instead of refreshed. If that walk did not begin, it is tried again when a refresh is due.
    if (options.instead === 'due' && !result.walk) result.trigger = 'refresh'
  }
  observe({ kind: 'finish', result })
  return result
}

async function refreshOrWalk(
  source: PageSource,
  lease: Lease,
  options: JobOptions,
  result: JobResult,
): Promise<void> {
  const times = createPageTimes(lease, options.now)
  const { store, refresh: policy, now, yieldToEventLoop, observe, signal } = options
  const parts = { store, lease, source, times, policy, observe, now, yieldToEventLoop, signal }
  const refresher = new Refresher(parts)
  await refresher.heedClock()
  const tools = { source, lease, times, refresher }
  if (!options.instead) return runWalk(tools, 0, options, result)
  const isAsked = options.instead === 'newest'
  const reading = await refresher.takeNext(isAsked)
  const { state } = refresher
  // A short list is walked, which costs the same and proves more; and so is one that was never read whole, or cannot be stored.
  const isWalked = state === null || lease.refusal !== null || isWalkedWhole(state)
  if (isWalked && (reading || !state)) return runWalk(tools, reading?.cost ?? 0, options, result)
  result.isInstead = true
  result.trigger = 'refresh'
  // None is due: another process has done it since the caller looked, or has used up the share.
  if (!reading) return
  const done = await refresher.refresh(reading, { isAsked })
  result.runId = done.runId
  result.run = done.run
  result.error = done.error
  if (!done.error) await prune(source, options)
}

/** What a job works with while it runs. */
interface JobTools {
  lease: Lease
  source: PageSource
  refresher: Refresher
  times: PageTimes
}

/**
 * Walks the list: resumes its open walk or begins one, reads it to its end, and judges what it did not show.
 * @param charged Requests already charged to the share of refreshes; 0 for an ordinary walk.
 */
async function runWalk(
  tools: JobTools,
  charged: number,
  options: JobOptions,
  result: JobResult,
): Promise<void> {
  const { lease, source, refresher, times } = tools
  const { job, store, removals: rules, observe, yieldToEventLoop, signal } = options
  const { walk, reading, run, replaces } = await begin(lease, options)
  const { traffic } = run
  const writer = new PageWriter({ store, lease, run, walk, replaces })
  result.walk = walk
  result.items = walk.rowsSeen
  result.runId = run.id
  observe({ kind: 'start', walk })
  try {
    // The mirror cannot hold this list. A person has to act, so the run's line shows it.
    if (lease.refusal) throw lease.refusal
    const read = await readWalk({
      job,
      reading,
      source,
      write: (answer) => writer.write(answer),
      betweenPages: { isDue: () => refresher.isDue(), run: () => refresher.runBetweenPages(run) },
      now: times.ofWalk,
      observe(event) {
        countTraffic(traffic, event)
        if (event.kind === 'page') result.items = event.itemsInWalk
        observe(event)
      },
      yieldToEventLoop,
      signal,
    })
    if (read.kind === 'incomplete') {
      await writer.giveUp()
      throw incompleteError(job, read)
    }
    const end = await endWalk({ store, lease, run, walk, reading, refresher, times, rules, writer }, read)
    result.coverage = end.coverage
    result.untrusted = end.untrusted
    result.heldBack = end.heldBack && heldError(job, end.heldBack, end.untrusted)
  } catch (error) {
    result.error = runError(error, signal)
  }
  if (charged > 0) await refresher.charge(traffic.requests - charged)
  const outcome = runOutcome(result.error, result.heldBack, traffic)
  const record = await store.finishRun(run, outcome)
  if (outcome.status === 'refused') result.walk = null
  else result.run = { ...record, ...traffic }
  if (!result.error) await prune(source, options)
}

const DAY_MS = 86_400_000

/** Deletes what is old, unless our clock and the API's are more than a day apart: by a wrong clock everything may seem old. */
async function prune(source: PageSource, { job, store, observe }: JobOptions): Promise<void> {
  const ahead = source.clockAhead?.() ?? 0
  if (Math.abs(ahead) <= DAY_MS) return store.prune(job)
  const message =
    `this machine's clock is ${inWords(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} the API's, so nothing old is deleted; ` +
    'set it (NTP): schedules and as_of go by it'
  observe({ kind: 'notices', page: 1, notices: [{ event: 'clock_differs', level: 'warn', message }] })
}

interface Beginning {
  walk: Walk
  reading: WalkReading
  run: Run
  /** See `WalkChoice.replace`. */
  replaces: readonly Pick<Walk, 'id' | 'kind'>[]
}

/** Resumes the open walk that fits this run, or begins one. */
async function begin(lease: Lease, options: JobOptions): Promise<Beginning> {
  const { job, plan, trigger, store, maxPasses, now, yieldToEventLoop, signal } = options
  const name = jobName(job)
  const open = await store.openWalks(job)
  const { resume, abandon, replace } = chooseWalk(open, plan, job, now())
  const { kind, firstPage } = plan
  const { total } = job.collection
  const lastCoverage = lease.lastWalk?.coverage ?? null
  const rules = { version: READING_VERSION, kind, firstPage, total, maxPasses, lastCoverage }
  const played = resume && (await replay(resume, { store, name, yieldToEventLoop, signal }))
  const { runId, walk } = await store.beginRun(lease, {
    trigger,
    plan,
    filters: filtersText(job.collection.filters),
    rules,
    resume: played ? resume.id : null,
    abandon: resume && !played ? [...abandon, resume.id] : abandon,
    brief: options.instead !== undefined,
  })
  const reading = played && walk.resumed ? played : new WalkReading(walk.rules, name)
  if (walk.resumed) reading.resume()
  return { walk, reading, run: { id: runId, traffic: noTraffic() }, replaces: replace }
}

interface EndOptions {
  store: Store
  lease: Lease
  run: Run
  walk: Walk
  reading: WalkReading
  refresher: Pick<Refresher, 'state'>
  times: PageTimes
  rules: RemovalRules
  writer: PageWriter
}

interface WalkEnd extends WalkOutcome {
  /** Rows that seem to have left the list and stay until a person decides. */
  heldBack: HeldRemovals | null
}

/**
 * Removes rows that left the list, or holds them back, and completes the walk. If the process dies before, the next
 * one resumes the walk without a request and judges it again.
 */
async function endWalk(options: EndOptions, result: Reading): Promise<WalkEnd> {
  const { store, lease, run, walk, writer } = options
  const isFull = walk.kind === 'full'
  const untrusted = isFull
    ? (walk.untrusted ?? whyUntrusted(withAdvice(lease, result), writer.newRejects))
    : null
  const outcome: WalkOutcome = { coverage: result.coverage, untrusted }
  const removals = isFull && untrusted === null ? await judgeRemovals(options, result) : 'none'
  const refresh = isFull ? nextRefresh(options, result) : null
  const { heldBack } = await store.closeWalk(lease, { walk, run, outcome, removals, refresh })
  return { ...outcome, heldBack }
}

/** A list that drifts walk after walk most probably has a total that is not the number of its items. */
function withAdvice({ job, lastWalk }: Lease, result: Reading): Reading {
  if (result.coverage !== 'drifted' || lastWalk?.coverage !== 'drifted') return result
  const advice = `; if its total is never the number of items that are listed, set ${totalKey(job)}: ignore`
  return { ...result, why: `${result.why}${advice}` }
}

/** What the next refresh starts from. */
function nextRefresh(
  { lease, walk, reading, writer, refresher, times }: EndOptions,
  { coverage, lastPage, totals, grewInFront }: Reading,
): SavedRefresh {
  const rules = rulesOf(lease.job)
  const complete = {
    scope: scopeText(lease.job),
    startedAt: walk.startedAt,
    endedAt: times.ofWalk(),
    addedBehindAt: grewInFront ? reading.beganAnewAt : null,
    lastPage,
    // A total that the walk could not count by is not used by refreshes either, whatever the API says.
    totals: rules.total === 'check' ? totals : { first: null, last: null },
    isSteady: coverage === 'steady',
    isDrifted: coverage === 'drifted',
    written: writer.written,
    rowsAdded: { first: walk.rowsAddedBefore, last: writer.rowsAdded },
  }
  return savedRefresh(afterFullWalk(refresher.state, complete, rules.newest), rules)
}

async function judgeRemovals(
  { store, lease, walk, reading, rules }: EndOptions,
  { cameAtOnce: atOnce, distinct }: Reading,
): Promise<Removals> {
  const { keyed } = reading
  const missing = await store.findMissing(lease, { walkId: walk.id, keyed, atOnce })
  return decideRemovals({ ...missing, listed: Math.min(keyed, distinct) }, rules)
}

/**
 * Runs tasks concurrently and waits for all of them. A failed one does not stop the others, unless the mirror itself failed: then all
 * stop. The `api` folder bounds the requests in flight: a job that waits for its rate limit costs the others nothing.
 */
export async function runConcurrently<T extends { error: KnownError | null }>(
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
  signal: AbortSignal,
): Promise<T[]> {
  const stop = new AbortController()
  const stopWithCaller = () => stop.abort(signal.reason)
  if (signal.aborted) stopWithCaller()
  signal.addEventListener('abort', stopWithCaller)
  const runOne = async (task: (signal: AbortSignal) => Promise<T>) => {
    const result = await task(stop.signal)
    if (result.error instanceof MirrorError) stop.abort(result.error)
    return result
  }
  try {
    return await Promise.all(tasks.map(runOne))
  } finally {
    signal.removeEventListener('abort', stopWithCaller)
  }
}
