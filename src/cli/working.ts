import path from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { KnownError } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'
import { runJobs } from '../sync/jobs.ts'
import type { Trigger, WalkPlan } from '../sync/types.ts'
import { type Globals, readConfig } from './context.ts'
import { createLogger } from './log.ts'
import { createReporter, type Reporter } from './reporter.ts'
import type { Runtime } from './runtime.ts'
import type { SelectedJob } from './selection.ts'
import { openSession, type Session } from './session.ts'
import { createTerminal } from './terminal.ts'
import { version } from './version.ts'

/** A command that walks lists, with everything it needs open. */
export interface Working {
  config: Config
  logger: Logger
  session: Session
  reporter: Reporter
  /** Runs these jobs side by side, once. */
  run(jobs: readonly SelectedJob[], how: HowToRun): Promise<JobResult[]>
}

export interface HowToRun {
  plan: WalkPlan
  trigger: Trigger
  /** `--wait`: wait for a job that another process has, instead of reporting it as busy. */
  waitForOwner: boolean
  /** `--accept-removals`: remove what is held back, and what would be. */
  acceptRemovals?: boolean
  signal: AbortSignal
}

export interface WorkingOptions {
  /** By hand: a token that an earlier run saw refused may be tried once more. */
  tryHeldTokens: boolean
  acceptAddress?: boolean
  /** The exit code where a signal comes before the mirror is open. */
  exitOfStop: (signal: AbortSignal) => number
}

/** What a sync means to walk, by schedule or by hand. */
export function syncPlan({ resumeWithin }: Config): WalkPlan {
  return { origin: 'sync', kind: 'full', firstPage: 1, resumeWithin, restart: false }
}

/** Opens what a walking command needs, after `prepare` has found nothing wrong with what was typed; closes it in the end. */
export async function whileWorking<T>(
  runtime: Runtime,
  globals: Globals,
  options: WorkingOptions,
  prepare: (config: Config) => T,
  work: (working: Working, prepared: T) => Promise<number>,
): Promise<number> {
  const config = readConfig(runtime, globals, 'resolve')
  const prepared = prepare(config)
  const terminal = createTerminal(runtime.stderr)
  const isPretty = runtime.stderr.isTTY === true
  const logger = await createLogger({
    level: globals.logLevel,
    destination: isPretty ? terminal.log : runtime.stderr,
    pretty: isPretty,
    color: !runtime.env.NO_COLOR,
  })
  // SQLite puts what outgrows its cache into a file. Beside the mirror there is room for it and a right to write, which
  // a container with a read-only root has nowhere else.
  runtime.env.SQLITE_TMPDIR ??= path.dirname(config.database)
  const userAgent = `admin-mirror/${version()}`
  const { signal } = runtime
  const session = await openSession({ config, runtime, logger, userAgent, ...options }).catch(
    unlessStopped(signal),
  )
  if (!session) {
    logger.warn({ signal: signal.reason }, 'stopped before the mirror could be opened')
    return options.exitOfStop(signal)
  }
  const reporter = createReporter({ config, runtime, logger, terminal })
  try {
    const run = runner(session, config, reporter, runtime)
    return await work({ config, logger, session, reporter, run }, prepared)
  } finally {
    reporter.close()
    session.close()
  }
}

/** A signal goes before the error that it has hastened: nobody waits long for a lock any more. */
function unlessStopped(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted && error instanceof KnownError) return null
    throw error
  }
}

/** How a session runs jobs for a command. */
export function runner(
  session: Session,
  config: Config,
  reporter: Pick<Reporter, 'observe'>,
  { now, sleep, turn }: Runtime,
): Working['run'] {
  return (jobs, { plan, trigger, waitForOwner, acceptRemovals: accept = false, signal }) =>
    runJobs(
      jobs.map(({ organization, job }) => ({
        job,
        plan,
        trigger,
        source: () => session.source(organization, job),
        store: session.store,
        maxPasses: config.maxPasses,
        removals: { ...config.removals, accept },
        waitForOwner,
        now,
        sleep,
        turn,
        observer: reporter.observe(job),
      })),
      signal,
    )
}
