import { once } from 'node:events'
import type { Logger } from 'pino'
import { MirrorLostError } from '../../errors.ts'
import { createDueCheck } from '../../schedule/catch-up.ts'
import { type ScheduledJob, startScheduler } from '../../schedule/scheduler.ts'
import type { JobResult } from '../../sync/job.ts'
import type { Globals } from '../context.ts'
import type { Runtime } from '../runtime.ts'
import { type SelectedJob, selectJobs } from '../selection.ts'
import { syncPlan, type Working, whileWorking } from '../working.ts'

/**
 * `start`: each organization's jobs on its schedule until SIGTERM, SIGINT or SIGHUP, and at once what is due already. It ends
 * with 4 where only a new process can use the mirror again, so that a supervisor makes one.
 */
export function start(runtime: Runtime, globals: Globals): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: false, exitOfStop: () => 0 },
    (config) => selectJobs(config, { org: [], collection: [] }),
    async (working, jobs) => {
      const { logger } = working
      const lost = new AbortController()
      const signal = AbortSignal.any([runtime.signal, lost.signal])
      const onResult = ({ error }: JobResult) => {
        if (error instanceof MirrorLostError) lost.abort(error)
      }
      const isDue = createDueCheck(runtime.now())
      const scheduled = jobs.map((job) => scheduledJob(job, working, { signal, onResult }, isDue))
      logger.info(
        { jobs: scheduled.length, due: scheduled.filter((job) => job.dueAtStart).length },
        'started',
      )
      const scheduler = startScheduler(scheduled, {
        onOverlap: (name) =>
          logger.warn({ job: name }, 'its time has come again while it still runs; this time is skipped'),
        onError: (name, error) => logger.error({ job: name, err: error }, 'a run ended in an unforeseen way'),
      })
      if (!signal.aborted) await once(signal, 'abort')
      tellWhyItStops(logger, signal)
      await scheduler.stop()
      return runtime.signal.aborted ? 0 : 4
    },
  )
}

function tellWhyItStops(logger: Logger, { reason }: AbortSignal): void {
  if (reason instanceof MirrorLostError)
    logger.error(
      { error_code: reason.code, error_message: reason.message },
      'stopping, since only a new process can use the mirror again',
    )
  else
    logger.info({ signal: reason }, 'stopping; what is written stays, and the next start goes on from there')
}

interface Following {
  signal: AbortSignal
  onResult: (result: JobResult) => void
}

function scheduledJob(
  selected: SelectedJob,
  working: Working,
  { signal, onResult }: Following,
  isDue: ReturnType<typeof createDueCheck>,
): ScheduledJob {
  const { organization, job } = selected
  const { config, session } = working
  const schedule = { expression: organization.schedule, timezone: config.timezone }
  const last = session.registry.lastRuns(organization.id, job.collection.name)
  // A walk that was interrupted goes on now: its time had come, and its work is not done.
  const dueAtStart = last.unfinished || isDue(last, schedule)
  let isFirst = dueAtStart
  return {
    name: `${organization.name} ${job.collection.name}`,
    ...schedule,
    dueAtStart,
    run: async () => {
      // What is due at the start waits for a process that is at it, perhaps to be stopped in mid-walk: a daily schedule
      // would otherwise leave the rest for tomorrow.
      const waitForOwner = isFirst
      isFirst = false
      const plan = syncPlan(config)
      const results = await working.run([selected], { plan, trigger: 'schedule', waitForOwner, signal })
      results.forEach(onResult)
    },
  }
}
