import { pino } from 'pino'
import type { HttpGet } from '../../src/api/http.ts'
import { type SelectedJob, selectJobs } from '../../src/cli/configuration.ts'
import { type KeepFreshOptions, keepFresh } from '../../src/cli/keep-fresh.ts'
import { openMirror } from '../../src/cli/mirror.ts'
import type { RefreshPlan } from '../../src/cli/refresh-plan.ts'
import { createRunner, type HowToRun, type RunJobs, syncPlan } from '../../src/cli/run-jobs.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import { openSession } from '../../src/cli/session.ts'
import type { Config } from '../../src/config/config.ts'
import type { ScheduledJob, Scheduler } from '../../src/schedule/scheduler.ts'
import type { JobEvent } from '../../src/sync/job.ts'
import type { Job, Observe } from '../../src/sync/types.ts'
import { nameOf, type Tell } from './happening.ts'
import type { ListFilters } from './list.ts'
import { askedSource } from './network.ts'
import type { Mistake } from './planted.ts'
import type { SimulatedProcess } from './process.ts'
import { steppedStore } from './stepped-store.ts'

// Loaded in the middle of a history it would take real time.
await Promise.all([import('../../src/cli/file.ts'), import('../../src/cli/open-mirror.ts')])

/** What a process was started for. Organizations by name; none named means all. */
export type Command =
  | { kind: 'sync'; org: readonly string[]; wait: boolean; refresh: boolean; acceptsRemovals: boolean }
  /** Each job so often, with a pause after each time. */
  | { kind: 'start'; org?: readonly string[]; rounds: number; pauseMs: number }
  | {
      kind: 'backfill'
      org: readonly string[]
      fromPage: number
      filters: ListFilters
      restart: boolean
      wait: boolean
    }
  | { kind: 'resume'; org: readonly string[] }

/** A sync of everything that waits for its turn. */
export const SYNC = { kind: 'sync', org: [], wait: true, refresh: false, acceptsRemovals: false } as const

export interface Machine {
  process: SimulatedProcess
  /** What is wrong with the program. */
  mistake: Mistake
  config: Config
  runtime: Runtime
  exchange: HttpGet
  tell: Tell
}

const SILENT = pino({ level: 'silent' })

/** Does what the command of this name does, put together as `openCommand` does it. */
export async function runCommand(machine: Machine, command: Command): Promise<void> {
  if (command.kind === 'resume') return resume(machine, command.org)
  const { process, mistake, config, runtime, exchange, tell } = machine
  const session = await openSession({
    config,
    runtime,
    exchange: mistake.exchange?.(exchange) ?? exchange,
    logger: SILENT,
  })
  const { now } = session
  const stepped = {
    ...session,
    store: steppedStore(mistake.store?.(session.store, now) ?? session.store, process, tell),
    source: async (...job: Parameters<typeof session.source>) => askedSource(await session.source(...job)),
  }
  const reporter = { observe: (job: Job) => observing(machine, nameOf(job)), close: () => {} }
  try {
    // The mirror's clock, as with everybody who shares it.
    const run = createRunner({
      config,
      session: stepped,
      reporter,
      runtime: { ...runtime, now, sleep: waitingFor(config, runtime) },
    })
    await work({ ...machine, runtime: { ...runtime, now } }, command, stepped.refreshes, run)
  } finally {
    await session.close()
  }
}

/** How often who waits for the owner of a list on a server looks. Milliseconds. */
const SELDOM_LOOKS_MS = 5000

/**
 * A process that waits for the owner of a list looks four times a second, for an hour at times. Each look is a statement that a
 * real server answers, and almost no other time of a history would be spent so.
 */
function waitingFor({ postgres }: Config, { sleep }: Runtime): Runtime['sleep'] {
  return postgres ? (_ms, signal) => sleep(SELDOM_LOOKS_MS, signal) : sleep
}

async function work(
  machine: Machine,
  command: Exclude<Command, { kind: 'resume' }>,
  refreshes: RefreshPlan,
  run: RunJobs,
): Promise<void> {
  const { config } = machine
  const { signal } = machine.process.stop
  const org = [...(command.org ?? [])]
  const jobs = selectJobs(config, { org, collection: [] })
  if (command.kind === 'start') {
    await runStart(machine, command, jobs, refreshes, run)
    return
  }
  const { wait: waitForOwner } = command
  if (command.kind === 'sync') {
    const { acceptsRemovals: acceptRemovals } = command
    const how = { plan: syncPlan(config), trigger: 'manual', waitForOwner, acceptRemovals } as const
    await run(jobs, { ...how, instead: command.refresh ? 'newest' : undefined, signal })
    return
  }
  const { fromPage: firstPage, restart } = command
  const filtered = jobs.flatMap((job) => withFilters(job, command.filters))
  const kind = firstPage > 1 || Object.keys(command.filters).length > 0 ? 'partial' : 'full'
  const plan: HowToRun['plan'] = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart }
  await run(filtered, { plan, trigger: 'backfill', waitForOwner, signal })
}

/** The job with the filters of a backfill on top of the configured ones; none where the two contradict each other. */
function withFilters({ organization, job }: SelectedJob, filters: ListFilters): SelectedJob[] {
  const { collection } = job
  const { filters: scope } = collection
  if (filters.parity !== undefined && scope.parity !== undefined && scope.parity !== filters.parity) return []
  return [
    {
      organization,
      job: { ...job, collection: { ...collection, filters: { ...scope, ...filters }, scope } },
    },
  ]
}

async function resume({ process, config, runtime, tell }: Machine, names: readonly string[]): Promise<void> {
  const ids = config.organizations
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map(({ id }) => id)
  const mirror = await openMirror({ config, runtime, log: { info: () => {}, warn: () => {} } })
  try {
    await mirror.tokens.resume(ids)
    tell({ kind: 'resumed', process, organizations: ids })
  } finally {
    await mirror.close()
  }
}

function observing({ process, tell }: Machine, job: string): Observe<JobEvent> {
  return (event) => {
    // Of what a dead process would say nothing is heard.
    if (!process.isAlive()) return
    if (event.kind === 'wait') tell({ kind: 'waits', process, job, reason: event.reason, until: event.until })
    if (event.kind !== 'finish') return
    const { error } = event.result
    tell({ kind: 'job ended', process, job, code: error?.code ?? null, message: error?.message ?? '' })
  }
}

type Start = Command & { kind: 'start' }

/**
 * `start`, whose scheduler the real clock would drive: the time of each job comes again after a pause, and meanwhile it is
 * refreshed as `start` does it.
 */
async function runStart(
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
  const planned = jobs.map((selected) => ({ selected, scheduled: entryOf(selected) }))
  const fresh = planned.filter(({ selected }) => selected.organization.refresh !== false)
  const keeping =
    fresh.length === 0
      ? Promise.resolve()
      : keepFresh({
          jobs: fresh,
          read: readingOf(machine, run),
          plan,
          scheduler: turns,
          runtime: { now: runtime.now, sleep: sleepOf(machine) },
          signal,
        })
  await Promise.all(
    planned.map(async ({ selected, scheduled }) => {
      for (let round = 0; round < command.rounds && !process.stop.signal.aborted; round++) {
        const how = { plan: syncPlan(config), trigger: 'schedule', waitForOwner: round === 0 } as const
        await turns.run(scheduled, async () => {
          await run([selected], { ...how, signal: process.stop.signal })
        })
        await sleepOf(machine)(command.pauseMs, process.stop.signal).catch(() => {})
      }
    }),
  )
  over.abort()
  await keeping
  await turns.ended()
}

function readingOf({ config, process }: Machine, run: RunJobs): KeepFreshOptions['read'] {
  const how = { plan: syncPlan(config), trigger: 'schedule', waitForOwner: false } as const
  return async (selected) => {
    const results = await run([selected], { ...how, instead: 'due', signal: process.stop.signal })
    return { hasFailed: results.some(({ error }) => error !== null) }
  }
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
