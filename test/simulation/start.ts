import { type FreshJob, keepFresh, type RefreshPlan } from '../../src/cli/refreshes.ts'
import type { SelectedJob } from '../../src/cli/selection.ts'
import { type RunJobs, syncPlan } from '../../src/cli/with-session.ts'
import type { ScheduledJob, Scheduler } from '../../src/schedule/scheduler.ts'
import type { Command, Machine } from './commands.ts'

type Start = Command & { kind: 'start' }

/**
 * `start`, whose scheduler the real clock would drive: the time of each job comes again after a pause, and meanwhile it is
 * refreshed as `start` does it.
 */
export async function runStart(
  machine: Machine,
  command: Start,
  jobs: readonly SelectedJob[],
  plan: RefreshPlan,
  run: RunJobs,
): Promise<void> {
  const { process, runtime, config } = machine
  const turns = createTurns()
  const over = new AbortController()
  const signal = AbortSignal.any([process.stop.signal, over.signal])
  const scheduled = jobs.map((job) => ({ job, entry: entryOf(job) }))
  const fresh = scheduled.flatMap(({ job, entry }) => freshJob(job, entry, machine, run))
  const keeping =
    fresh.length === 0
      ? Promise.resolve()
      : keepFresh({
          jobs: fresh,
          plan,
          scheduler: turns,
          runtime: { now: runtime.now, sleep: sleepOf(machine) },
          onTrouble: () => {},
          signal,
        })
  await Promise.all(
    scheduled.map(async ({ job, entry }) => {
      for (let round = 0; round < command.rounds && !process.stop.signal.aborted; round++) {
        const how = { plan: syncPlan(config), trigger: 'schedule', waitForOwner: round === 0 } as const
        await turns.run(entry, async () => {
          await run([job], { ...how, signal: process.stop.signal })
        })
        await sleepOf(machine)(command.pauseMs, process.stop.signal).catch(() => {})
      }
    }),
  )
  over.abort()
  await keeping
  await turns.ended()
}

function freshJob(
  selected: SelectedJob,
  scheduled: ScheduledJob,
  { config, process }: Machine,
  run: RunJobs,
): FreshJob[] {
  if (selected.organization.refresh === false) return []
  const how = { plan: syncPlan(config), trigger: 'schedule', waitForOwner: false } as const
  const runOnce = async (instead?: 'due') => {
    await run([selected], { ...how, instead, signal: process.stop.signal })
  }
  return [{ selected, scheduled, refresh: () => runOnce('due'), walk: () => runOnce() }]
}

function entryOf({ organization, job }: SelectedJob): ScheduledJob {
  const name = `${organization.name} ${job.collection.name}`
  return { name, expression: organization.schedule, timezone: 'UTC', dueAtStart: false, run: async () => {} }
}

/** What the scheduler does for a job: never two things at once. */
function createTurns() {
  const busy = new Map<ScheduledJob, Promise<void>>()

  function begin(job: ScheduledJob, task: () => Promise<void>): Promise<void> {
    const ended = task().finally(() => busy.delete(job))
    busy.set(job, ended)
    return ended
  }

  const runBetween: Scheduler['runBetween'] = (job, task) => {
    if (!busy.has(job)) void begin(job, task)
  }

  return {
    isRunning: (job: ScheduledJob) => busy.has(job),
    runBetween,
    /** Waits for a refresh that is under way. */
    async run(job: ScheduledJob, task: () => Promise<void>) {
      await busy.get(job)
      await begin(job, task)
    },
    ended: () => Promise.all(busy.values()),
  }
}

/** As the runtime's; but whoever dies asleep never wakes, whatever is done about its errors. */
function sleepOf({ process, runtime }: Machine): Machine['runtime']['sleep'] {
  return async (ms, signal) => {
    try {
      await runtime.sleep(ms, signal)
    } catch (error) {
      if (!process.isAlive()) await new Promise(() => {})
      throw error
    }
  }
}
