import type { Logger } from 'pino'
import { type ApiOptions, createApi } from '../api/client.ts'
import type { HttpGet } from '../api/http.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { JobError, KnownError, MirrorError, toKnownError } from '../errors.ts'
import type { Pings } from '../ping/pings.ts'
import { type JobOptions, type JobResult, runConcurrently, runJob } from '../sync/job.ts'
import type { Job, PageSource, WalkPlan } from '../sync/types.ts'
import { USER_AGENT } from './config-file.ts'
import { pingsOf } from './configured-pings.ts'
import { createCredentialsReader, fingerprintOf } from './credentials.ts'
import { exitCodeOfStop, exitCodeOfStoppedStart } from './exit-code.ts'
import { kindOf, type OpenMirror } from './mirror.ts'
import { createLogger, loggerOptions } from './output/log.ts'
import { createReporter, type Reporter } from './output/reporter.ts'
import { createTerminal } from './output/terminal.ts'
import { createPublisher, type Publisher } from './publisher.ts'
import { createRefreshPlan, type RefreshPlan } from './refresh-plan.ts'
import type { Globals, Runtime } from './runtime.ts'
import { budgetKey, type SelectedJob } from './selection.ts'

/** The mirror and the API of a configuration, for commands that read lists. */
export interface Session extends OpenMirror {
  /** The pages of a job. Reads the token again; `refusal` reports one that cannot be read or is held. */
  source(organization: OrganizationConfig, job: Job): Promise<PageSource>
  refreshes: RefreshPlan
  /** The key of an organization's rate budget. */
  budgetOf(organization: OrganizationConfig): string
}

export interface SessionOptions {
  config: Config
  runtime: Runtime
  logger: Logger
  /** `--accept-address`: the mirror holds the lists of `api.baseUrl`, whatever address they were read from. */
  acceptAddress?: boolean
  /** Called after each request. */
  onAnswer?: ApiOptions['onAnswer']
  /** Replaces the network in a simulation. */
  exchange?: HttpGet
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { config, runtime, logger, acceptAddress, onAnswer, exchange } = options
  const { open } = await kindOf(config)
  const address = acceptAddress ? 'accept' : 'claim'
  const mirror = await open({ config, runtime, log: logger, address })
  const { store, tokens } = mirror
  await tokens.register(config.organizations.map(registered))
  const api = createApi(
    { ...apiOptions(config, runtime, mirror), onAnswer: tracing(logger, onAnswer) },
    exchange,
  )
  const readCredentials = createCredentialsReader({ config, tokens, now: mirror.now })

  const budgetOf = (organization: OrganizationConfig) =>
    budgetKey(config, organization.id, fingerprintOf(organization, tokens))
  const refreshes = createRefreshPlan({ config, store, budgetOf, now: mirror.now })
  return {
    ...mirror,
    refreshes,
    budgetOf,
    source: async (organization, job) => {
      try {
        const source = api.open(job, await readCredentials(organization))
        refreshes.watch(organization, source)
        return source
      } catch (error) {
        return closedSource(error)
      }
    },
  }
}

/**
 * With a held token, or a mirror that cannot be used, no run begins. If the token file cannot be read, a run begins and fails, so that
 * `sync_runs` shows it.
 */
function closedSource(error: unknown): PageSource {
  const isTokenMissing = error instanceof Error && error.name === 'TokenFileError'
  const known = isTokenMissing ? new JobError('CONFIGURATION', error.message) : toKnownError(error)
  const refusal = isTokenMissing ? null : known
  return {
    refusal: async () => refusal,
    limit: () => null,
    fetchPage: () => Promise.reject(known),
    close: async () => {},
  }
}

function registered({ id, name, collections }: OrganizationConfig) {
  return { id, name, collections: collections.map((collection) => collection.name) }
}

function apiOptions(
  config: Config,
  { sleep, random, yieldToEventLoop }: Runtime,
  { tokens, now }: OpenMirror,
): ApiOptions {
  const { api, rateLimit, retry } = config
  return {
    baseUrl: api.baseUrl,
    timeoutMs: api.timeout,
    maxResponseBytes: api.maxResponseBytes,
    userAgent: USER_AGENT,
    concurrency: config.concurrency,
    rate: {
      requestsPerMinute: rateLimit.requestsPerMinute,
      sharePercent: rateLimit.sharePercent,
      fallbackWaitMs: rateLimit.fallbackWait,
      maxWaitMs: rateLimit.maxWait,
    },
    retry: { attempts: retry.attempts, minDelayMs: retry.minDelay, maxDelayMs: retry.maxDelay },
    budgets: tokens.budgets,
    now,
    sleep,
    random,
    yieldToEventLoop,
  }
}

/** With `--log-level trace`: a line for each answer. Filters may hold personal data, so only the path is shown. */
function tracing(logger: Logger, onAnswer: ApiOptions['onAnswer']): ApiOptions['onAnswer'] {
  if (!logger.isLevelEnabled('trace')) return onAnswer
  return (answer) => {
    onAnswer?.(answer)
    const { job, page, status, ms, announced } = answer
    const { organization, collection } = job
    logger.trace(
      {
        event: status === null ? 'request_lost' : 'request_answered',
        organization: organization.name,
        collection: collection.name,
        method: 'GET',
        path: collection.path,
        page,
        status,
        duration_ms: ms,
        rate_limit: announced?.limit,
        rate_limit_remaining: announced?.remaining,
        retry_after_ms: announced?.retryAfterMs,
      },
      status === null ? 'no answer came' : 'request answered',
    )
  }
}

/** What a command that reads lists works with. */
export interface CommandSession extends Session {
  logger: Logger
  reporter: Reporter
  /** Runs these jobs side by side, once. */
  runJobs: RunJobs
}

export type RunJobs = (jobs: readonly SelectedJob[], how: HowToRun) => Promise<JobResult[]>

export interface HowToRun
  extends Pick<JobOptions, 'trigger' | 'instead' | 'signal'>,
    Partial<Pick<JobOptions, 'waitForOwner'>> {
  /** Absent: that of a sync. */
  plan?: WalkPlan
  /** `--accept-removals`: remove what is held back, and what would be. */
  acceptRemovals?: boolean
}

/** The walk of a sync, by schedule or by hand. */
export function syncPlan({ resumeWithin }: Config): WalkPlan {
  return { origin: 'sync', kind: 'full', firstPage: 1, resumeWithin, restart: false }
}

export interface SessionMode {
  /** Typed by hand: a signal has an exit code of its own. */
  byHand: boolean
  acceptAddress?: boolean
  onAnswer?: SessionOptions['onAnswer']
}

/** Opens a session, runs `work`, and closes the session. Returns the exit code. */
export async function withSession(
  config: Config,
  runtime: Runtime,
  globals: Globals,
  { byHand, acceptAddress = false, onAnswer }: SessionMode,
  work: (session: CommandSession) => Promise<number>,
): Promise<number> {
  const { signal, stderr, env } = runtime
  const terminal = createTerminal(stderr, env.TERM)
  const logger = await createLogger(loggerOptions(globals, runtime, terminal))
  const options = { config, runtime, logger, acceptAddress, onAnswer }
  const session = await openSession(options).catch(unlessStopped(signal))
  if (!session) {
    logger.warn(
      { event: 'stopped_early', signal: signal.reason },
      'stopped before the mirror could be opened',
    )
    return byHand ? exitCodeOfStop(signal) : exitCodeOfStoppedStart(signal)
  }
  const pings = pingsOf(config, runtime, logger, USER_AGENT)
  const { publish: target } = config
  const publisher =
    target === null || config.postgres
      ? null
      : createPublisher({ target, config, runtime, logger, mirror: session, isService: !byHand })
  const reporter = createReporter({
    config,
    runtime,
    logger,
    terminal,
    budgetOf: budgetsOf(config, session),
    onRefresh: () => publisher?.note(),
  })
  const tools = { config, session, reporter, pings, publisher }
  const runJobs = createRunner({ ...tools, runtime: { ...runtime, now: session.now } })
  try {
    const exitCode = await work({ ...session, logger, reporter, runJobs })
    if (byHand) {
      await publisher?.finish()
      reporter.summarize()
    }
    return exitCode
  } finally {
    await publisher?.close()
    reporter.close()
    await session.close()
    // Last: other processes can have the mirror while pings are sent.
    await pings.idle()
  }
}

/** The rate budget of a job. */
function budgetsOf({ organizations }: Config, session: Session): (job: Job) => string {
  const names = new Map(organizations.map((one) => [one.id, () => session.budgetOf(one)]))
  return ({ organization: { id } }) => names.get(id)?.() ?? id
}

/** Handles an error of opening: null after a signal, which ends the wait for a lock early. Throws any other error. */
function unlessStopped(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted && error instanceof KnownError) return null
    throw error
  }
}

/** How many jobs begin together before the event loop runs. */
const AT_ONCE = 10

/** Returns what a job waits for before it begins: hundreds may begin together, and signals and probes are answered between them. */
function startInBatches(yieldToEventLoop: () => Promise<void>): JobOptions['mayBegin'] {
  let begun = 0
  let last = Promise.resolve()
  return () => {
    if (begun === 0)
      void yieldToEventLoop().then(() => {
        begun = 0
      })
    begun++
    if (begun <= AT_ONCE) return null
    last = last.then(yieldToEventLoop)
    return last
  }
}

interface RunnerOptions {
  config: Config
  session: Pick<Session, 'store' | 'source' | 'refreshes'>
  reporter: Pick<Reporter, 'observe'>
  pings?: Pick<Pings, 'begin'>
  publisher?: Pick<Publisher, 'note'> | null
  /** With the clock of the mirror. */
  runtime: Pick<Runtime, 'now' | 'sleep' | 'yieldToEventLoop'>
}

/** Returns the function that runs jobs in a session. */
export function createRunner(options: RunnerOptions): RunJobs {
  const { config, session, reporter, pings, publisher, runtime } = options
  const { now, sleep, yieldToEventLoop } = runtime
  const mayBegin = startInBatches(yieldToEventLoop)
  return async (selected, how) => {
    const { plan = syncPlan(config), waitForOwner = false, acceptRemovals: accept = false } = how
    const { trigger, instead, signal } = how
    // A refresh that is due is not a run of a schedule, and comes every few minutes.
    const isDueRefresh = instead === 'due'
    // Before any await: jobs that begin in one turn of the event loop are one run for pings.
    const tellEnd = isDueRefresh ? undefined : pings?.begin()
    // The jobs report errors. For a refresh that is due, the states have just been read.
    if (!isDueRefresh) await session.refreshes.update().catch(() => {})
    const tasks = selected.map(
      ({ organization, job }) =>
        (stop: AbortSignal) =>
          runJob({
            job,
            plan,
            trigger,
            source: () => session.source(organization, job),
            store: session.store,
            refresh: session.refreshes.policyOf({ organization, job }),
            instead,
            maxPasses: config.maxPasses,
            removals: { ...config.removals, accept },
            waitForOwner,
            now,
            sleep,
            mayBegin,
            yieldToEventLoop,
            observe: reporter.observe(job),
            signal: stop,
          }),
    )
    const results = await runConcurrently(tasks, signal)
    publisher?.note()
    tellEnd?.(results.find(({ error }) => error instanceof MirrorError)?.error?.message ?? null)
    return results
  }
}
