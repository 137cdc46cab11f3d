import { once } from 'node:events'
import { createDueCheck } from '../../schedule/due.ts'
import { type ScheduledJob, startScheduler } from '../../schedule/scheduler.ts'
import type { Globals } from '../context.ts'
import type { Runtime } from '../runtime.ts'
import { type SelectedJob, selectJobs } from '../selection.ts'
import { syncPlan, type Working, whileWorking } from '../working.ts'

/** `start`: each organization's jobs on its schedule until SIGTERM, SIGINT or SIGHUP, and at once what is due already. */
export function start(runtime: Runtime, globals: Globals): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: false, exitOfStop: () => 0 },
    (config) => selectJobs(config, { org: [], collection: [] }),
    async (working, jobs) => {
      const { logger } = working
      const isDue = createDueCheck(runtime.now())
      const scheduled = jobs.map((job) => scheduledJob(job, working, runtime, isDue))
      logger.info(
        { jobs: scheduled.length, due: scheduled.filter((job) => job.dueAtStart).length },
        'started',
      )
      const scheduler = startScheduler(scheduled, {
        onOverlap: (name) =>
          logger.warn({ job: name }, 'its time has come again while it still runs; this time is skipped'),
        onError: (name, error) => logger.error({ job: name, err: error }, 'a run ended in an unforeseen way'),
      })
      if (!runtime.signal.aborted) await once(runtime.signal, 'abort')
      logger.info(
        { signal: runtime.signal.reason },
        'stopping; what is written stays, and the next start goes on from there',
      )
      await scheduler.stop()
      return 0
    },
  )
}

function scheduledJob(
  selected: SelectedJob,
  working: Working,
  runtime: Runtime,
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
      await working.run([selected], {
        plan: syncPlan(config),
        trigger: 'schedule',
        waitForOwner,
        signal: runtime.signal,
      })
    },
  }
}
