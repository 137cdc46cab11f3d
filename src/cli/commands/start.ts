import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { KnownError, MirrorLostError, MirrorUnavailableError } from '../../errors.ts'
import { isDue } from '../../schedule/due.ts'
import { type SchedulerEvents, startScheduler } from '../../schedule/scheduler.ts'
import { lastRuns } from '../../store/core/runs.ts'
import type { JobResult } from '../../sync/job.ts'
import { counted, jobName } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { EXIT_OF_SIGNAL } from '../exit-code.ts'
import { keepFresh, type PlannedJob } from '../keep-fresh.ts'
import type { Listening } from '../listening.ts'
import { type Log, openLog } from '../output/log.ts'
import type { HowToRun } from '../run-jobs.ts'
import type { Invocation, Runtime } from '../runtime.ts'
import { type ConfiguredJob, selectJobs } from '../selection.ts'
import { type CommandSession, openCommand } from '../session.ts'

/** What is there before the mirror can be opened. */
interface Daemon {
  config: Config
  runtime: Runtime
  log: Log
  listening: Listening | null
  jobs: readonly ConfiguredJob[]
}

/** Between two tries to open a mirror that is locked or full. Milliseconds. */
const OPEN_AGAIN_MS = 5000

/**
 * `start`: each organization's jobs on its schedule until SIGTERM, SIGINT or SIGHUP (exit code 129), and at once what is due already. Exits
 * with 4 if only a new process can use the mirror again, so that a supervisor starts one.
 */
export async function run(runtime: Invocation): Promise<number> {
  const { signal, sleep } = runtime
  const config = readConfig(runtime, 'resolve')
  const jobs = selectJobs(config)
  // Before the mirror: a port in use ends the command with nothing sent or written.
  const listening =
    config.http && (await (await import('../listening.ts')).listenFor(config, config.http, runtime))
  const log = await openLog(runtime)
  try {
    for (let told = ''; !signal.aborted;) {
      try {
        return await runOnMirror({ config, runtime, log, listening, jobs })
      } catch (error) {
        // The signal ends waits for a mirror early.
        const isOfTheEnd =
          signal.aborted && error instanceof KnownError && !(error instanceof MirrorLostError)
        if (isOfTheEnd) break
        if (!(error instanceof MirrorUnavailableError)) throw error
        // As a running one does: it stays up, says why, and tries again.
        const { message } = error
        listening?.tellUnusable(message)
        if (told !== message)
          log.logger.warn({ event: 'mirror_unavailable' }, `${message}; it is tried again`)
        told = message
        await sleep(OPEN_AGAIN_MS, signal).catch(() => {})
      }
    }
    return stopped(log.logger, signal)
  } finally {
    await listening?.close()
  }
}

/** Opens the mirror, and runs the jobs until the signal. */
async function runOnMirror(daemon: Daemon): Promise<number> {
  const { config, runtime, log, listening } = daemon
  const onAnswer = listening?.onAnswer
  const session = await openCommand({ config, runtime, onAnswer, isService: true, ...log })
  try {
    await session.leases.announce(config.fingerprint)
    return await runScheduled(daemon, session)
  } finally {
    // Else `status` says that the daemon died.
    if (runtime.signal.aborted) session.leases.withdraw()
    listening?.tellUnusable('start is stopping')
    await session.close()
  }
}

/** Runs a job by itself, and tells the listener how it ended. Never rejects. */
export type RunOne = (
  job: ConfiguredJob,
  how?: Pick<HowToRun, 'instead' | 'waitForOwner'>,
) => Promise<JobResult['error']>

/** Runs the jobs on an open mirror until the signal. */
export async function runScheduled(daemon: Omit<Daemon, 'log'>, session: CommandSession): Promise<number> {
  const { runtime, listening } = daemon
  const { logger, openQueue } = session
  const lost = new AbortController()
  const signal = AbortSignal.any([runtime.signal, lost.signal])
  const runOne: RunOne = async (job, how = {}) => {
    const [result] = await session.runJobs([job], { ...how, trigger: 'schedule', signal })
    if (!result) return null
    listening?.onResult(result)
    if (result.error instanceof MirrorLostError) lost.abort(result.error)
    return result.error
  }
  const planned = await planOf(daemon, session, runOne)
  const events: SchedulerEvents = {
    onOverlap: (job) =>
      logger.info({ event: 'schedule_skipped', job }, 'still being read, so this scheduled run is skipped'),
    onError: (job, err) =>
      logger.error({ event: 'run_crashed', job, err }, 'a run ended with an unexpected error'),
  }
  const sharing = { runtime, planned, session, events, signal, runOne }
  // Workers that share a mirror take what is due from one queue.
  const scheduler = openQueue
    ? await (await import('../start-sharing.ts')).startSharing(openQueue, sharing)
    : startScheduler(planned, events, runtime)
  listening?.serve(session, scheduler)
  const keeping = keepFresh({
    jobs: planned,
    read: async (job) => (await runOne(job, { instead: 'due' })) !== null,
    plan: session.refreshes,
    scheduler,
    runtime: { now: session.now, sleep: runtime.sleep },
    signal,
  })
  if (!signal.aborted) await once(signal, 'abort')
  const exitCode = stopped(logger, signal)
  // No tick begins a run any more, while a refresh ends.
  await Promise.all([scheduler.stop(), keeping])
  return exitCode
}

/** When each job runs, and what is due at the start. */
async function planOf(
  { config, jobs }: Pick<Daemon, 'config' | 'jobs'>,
  session: CommandSession,
  runOne: RunOne,
): Promise<PlannedJob[]> {
  const { now, logger } = session
  const last = await session.read(lastRuns)
  const planned = jobs.map((list): PlannedJob => {
    const { organization, collection } = list
    const schedule = { expression: organization.schedule, timezone: config.timezone }
    const dueAtStart = isDue(last(organization.id, collection.name), schedule, now())
    // A job that is due at the start waits for its owner, which may stop in the middle of a walk: a daily schedule would
    // otherwise leave the rest for tomorrow.
    let waitForOwner = dueAtStart
    const runAtTick = () => {
      const how = { waitForOwner }
      waitForOwner = false
      return runOne(list, how)
    }
    return { list, name: jobName(list), ...schedule, dueAtStart, run: runAtTick }
  })
  const due = planned.filter(({ dueAtStart }) => dueAtStart).length
  const text = `started: ${counted(planned.length, 'list')}, ${due} of them due now`
  logger.info({ event: 'daemon_started', jobs: planned.length, due }, text)
  return planned
}

/** Logs why it stops, and returns the exit code. A service that restarts on failure comes back after a SIGHUP, with the new configuration. */
function stopped(logger: Logger, { reason }: AbortSignal): number {
  if (reason instanceof MirrorLostError) {
    const fields = { event: 'daemon_stopping', error_code: reason.code, error_message: reason.message }
    logger.error(fields, 'stopping, since only a new process can use the mirror again')
    return 4
  }
  logger.info({ event: 'daemon_stopping', signal: reason }, 'stopping; the next start continues from there')
  return reason === 'SIGHUP' ? EXIT_OF_SIGNAL.SIGHUP : 0
}
