import { once } from 'node:events'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { KnownError, MirrorLostError, MirrorUnavailableError } from '../../errors.ts'
import { isDue } from '../../schedule/due.ts'
import { type Scheduler, type SchedulerEvents, startScheduler } from '../../schedule/scheduler.ts'
import { lastRunsOfAll } from '../../store/core/runs.ts'
import type { JobResult } from '../../sync/job.ts'
import { counted, jobName } from '../../text.ts'
import { configOfFile, readConfig } from '../config-file.ts'
import { EXIT_OF_SIGNAL } from '../exit-code.ts'
import { type KeepFreshOptions, keepFresh, type PlannedJob } from '../keep-fresh.ts'
import type { Listening } from '../listening.ts'
import type { OpenMirror } from '../mirror.ts'
import type { SharedStart } from '../postgres/start-sharing.ts'
import type { HowToRun } from '../run-jobs.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type SelectedJob, selectJobs } from '../selection.ts'
import { type CommandSession, type Log, openCommand, openLog } from '../session.ts'

/**
 * `start`: each organization's jobs on its schedule until SIGTERM, SIGINT or SIGHUP (exit code 129), and at once what is due already. Exits
 * with 4 if only a new process can use the mirror again, so that a supervisor starts one.
 */
export async function run(runtime: Runtime, globals: Globals): Promise<number> {
  const { signal } = runtime
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, { org: [], collection: [] })
  // Before the mirror: a port in use ends the command with nothing sent or written.
  const listening = await openListening(config, runtime)
  const log = await openLog(runtime, globals)
  let told: string | null = null
  try {
    for (;;) {
      try {
        return await runOnMirror(config, runtime, log, jobs, listening)
      } catch (error) {
        if (!signal.aborted && error instanceof MirrorUnavailableError) {
          // As a running one does: it stays up, says why, and tries again.
          const { message } = error
          listening?.tellUnusable(message)
          if (told !== message)
            log.logger.warn({ event: 'mirror_unavailable' }, `${message}; it is tried again`)
          told = message
          await runtime.sleep(OPEN_AGAIN_MS, signal).catch(() => {})
        } else if (!signal.aborted || error instanceof MirrorLostError || !(error instanceof KnownError))
          throw error
        // What waited for the mirror was stopped.
        if (signal.aborted) {
          logStop(log.logger, signal)
          return exitCodeOfStop(signal)
        }
      }
    }
  } finally {
    await listening?.close()
  }
}

/** Between two tries to open a mirror that is locked or full. Milliseconds. */
const OPEN_AGAIN_MS = 5000

/** A service that restarts on failure comes back after a SIGHUP, with the new configuration. */
function exitCodeOfStop({ reason }: AbortSignal): number {
  return reason === 'SIGHUP' ? EXIT_OF_SIGNAL.SIGHUP : 0
}

/** Loads the listener's code only if there is one. */
async function openListening(config: Config, runtime: Runtime): Promise<Listening | null> {
  if (config.http === null) return null
  const { listenFor } = await import('../listening.ts')
  return listenFor(configOfFile(config, runtime), config.http, runtime.now)
}

/** Opens the mirror, and runs the jobs until the signal. */
async function runOnMirror(
  config: Config,
  runtime: Runtime,
  log: Log,
  jobs: readonly SelectedJob[],
  listening: Listening | null,
): Promise<number> {
  const onAnswer = listening?.onAnswer
  const session = await openCommand({ config, runtime, onAnswer, isService: true, ...log })
  try {
    await announce(config, session)
    try {
      return await runScheduled(config, runtime, jobs, session, listening)
    } finally {
      // Else `status` says that the daemon died.
      if (runtime.signal.aborted) session.leases.withdraw()
    }
  } finally {
    listening?.tellUnusable('start is stopping')
    await session.close()
  }
}

/** On a file each daemon reads every list; on a server they divide them. */
async function announce(config: Config, { leases, logger }: CommandSession): Promise<void> {
  const others = await leases.announce(config.fingerprint)
  for (const { pid: owner, since } of config.postgres ? [] : others)
    logger.warn({ event: 'daemon_beside', owner, since }, DAEMON_BESIDE)
}

const DAEMON_BESIDE =
  'another start is at work on this mirror: what one of them has read, the other reads again, so the API is asked twice; end ' +
  'one of them, unless it is stopping already'

/** Runs the jobs until the signal. */
async function runScheduled(
  config: Config,
  runtime: Runtime,
  jobs: readonly SelectedJob[],
  session: CommandSession,
  listening: Listening | null,
): Promise<number> {
  const { logger, now } = session
  const lost = new AbortController()
  const signal = AbortSignal.any([runtime.signal, lost.signal])
  const onResult = (result: JobResult) => {
    listening?.onResult(result)
    if (result.error instanceof MirrorLostError) lost.abort(result.error)
  }
  const runOne: RunOne = async (selected, how) => {
    const results = await session.runJobs([selected], { ...how, trigger: 'schedule', signal })
    for (const result of results) onResult(result)
    return { hasFailed: results.some(({ error }) => error !== null) }
  }
  const lastRuns = await session.run(lastRunsOfAll)
  const begunAt = now()
  const planned = jobs.map((selected): PlannedJob => {
    const { organization, job } = selected
    const schedule = { expression: organization.schedule, timezone: config.timezone }
    const dueAtStart = isDue(lastRuns(organization.id, job.collection.name), schedule, begunAt)
    let isFirst = dueAtStart
    const runAtTick = async () => {
      // A job that is due at the start waits for its owner, which may stop in the middle of a walk: a daily schedule would
      // otherwise leave the rest for tomorrow.
      const waitForOwner = isFirst
      isFirst = false
      await runOne(selected, { waitForOwner })
    }
    return { selected, scheduled: { name: jobName(job), ...schedule, dueAtStart, run: runAtTick } }
  })
  const scheduled = planned.map((one) => one.scheduled)
  const due = scheduled.filter((job) => job.dueAtStart).length
  const text = `started: ${counted(planned.length, 'list')}, ${due} of them due now`
  logger.info({ event: 'daemon_started', jobs: planned.length, due }, text)
  const skipped = new Set<string>()
  const events: SchedulerEvents = {
    onOverlap(name) {
      // A schedule that comes more often than a walk ends skips a run again and again.
      const level = skipped.has(name) ? 'debug' : 'warn'
      skipped.add(name)
      logger[level](
        { event: 'schedule_skipped', job: name },
        'the list is still being read, so this scheduled run is skipped',
      )
    },
    onError: (name, error) =>
      logger.error({ event: 'run_crashed', job: name, err: error }, 'a run ended with an unexpected error'),
  }
  const scheduler = session.openQueue
    ? await startShared(session.openQueue, { runtime, planned, session, events, signal, onResult })
    : startScheduler(scheduled, events, runtime)
  await listening?.serve(session, scheduler)
  const { sleep } = runtime
  const keeping = keepFresh({
    jobs: planned.filter(({ selected }) => selected.organization.refresh !== false),
    read: async (selected) =>
      (await mayRead(session, selected)) ? runOne(selected, { instead: 'due' }) : { hasFailed: true },
    plan: session.refreshes,
    scheduler,
    runtime: { now, sleep },
    signal,
  })
  if (!signal.aborted) await once(signal, 'abort')
  logStop(logger, signal)
  await keeping
  await scheduler.stop()
  return runtime.signal.aborted ? exitCodeOfStop(runtime.signal) : 4
}

/** Whether no other process reads the list: who walks it refreshes it, too. A mirror that cannot be used is told of by the next walk. */
async function mayRead({ leases }: CommandSession, { job }: SelectedJob): Promise<boolean> {
  const names = { organization: job.organization.id, collection: job.collection.name }
  return leases.isFree(names).catch(() => false)
}

function logStop(logger: Logger, { reason }: AbortSignal): void {
  if (reason instanceof MirrorLostError)
    logger.error(
      { event: 'daemon_stopping', error_code: reason.code, error_message: reason.message },
      'stopping, since only a new process can use the mirror again',
    )
  else
    logger.info(
      { event: 'daemon_stopping', signal: reason },
      'stopping; what is written stays, and the next start continues from there',
    )
}

/** Runs a job by itself, and reports how it ended. It never rejects. */
type RunOne = (
  selected: SelectedJob,
  how: Pick<HowToRun, 'instead' | 'waitForOwner'>,
) => ReturnType<KeepFreshOptions['read']>

/** Its code is loaded only if the mirror is on a server. */
async function startShared(
  openQueue: NonNullable<OpenMirror['openQueue']>,
  options: SharedStart,
): Promise<Scheduler> {
  const { startSharing } = await import('../postgres/start-sharing.ts')
  return startSharing(openQueue, options)
}
