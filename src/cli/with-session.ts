import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { KnownError, MirrorError } from '../errors.ts'
import type { Pings } from '../ping/pings.ts'
import { type JobOptions, type JobResult, runConcurrently, runJob } from '../sync/job.ts'
import type { Job, WalkPlan } from '../sync/types.ts'
import { USER_AGENT as userAgent } from './config-file.ts'
import { pingsOf } from './configured-pings.ts'
import { exitCodeOfStop, exitCodeOfStoppedStart } from './exit-code.ts'
import { createLogger, loggerOptions } from './output/log.ts'
import { createReporter, type Reporter } from './output/reporter.ts'
import { createTerminal } from './output/terminal.ts'
import { createPublisher, type Publisher } from './publisher.ts'
import type { Globals, Runtime } from './runtime.ts'
import type { SelectedJob } from './selection.ts'
import { openSession, type Session, type SessionOptions } from './session.ts'

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
  /** Typed by hand: it may try a held token once more, and a signal has an exit code of its own. */
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
  const options = { config, runtime, logger, userAgent, acceptAddress, onAnswer }
  const session = await openSession(options).catch(unlessStopped(signal))
  if (!session) {
    logger.warn(
      { event: 'stopped_early', signal: signal.reason },
      'stopped before the mirror could be opened',
    )
    return byHand ? exitCodeOfStop(signal) : exitCodeOfStoppedStart(signal)
  }
  const pings = pingsOf(config, runtime, logger, userAgent)
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
