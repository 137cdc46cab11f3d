import { pino } from 'pino'
import type { HttpGet } from '../../src/api/http.ts'
import { keepFresh } from '../../src/cli/keep-fresh.ts'
import { openMirror } from '../../src/cli/mirror.ts'
import type { RefreshPlan } from '../../src/cli/refresh-plan.ts'
import { createRunner, type HowToRun, type RunJobs, syncPlan } from '../../src/cli/run-jobs.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import { type SelectedJob, selectJobs } from '../../src/cli/selection.ts'
import { openSession } from '../../src/cli/session.ts'
import type { Config } from '../../src/config/config.ts'
import type { ScheduledJob } from '../../src/schedule/scheduler.ts'
import type { JobEvent } from '../../src/sync/job.ts'
import type { Store } from '../../src/sync/store.ts'
import type { Observe } from '../../src/sync/types.ts'
import { nameOf, type Tell } from './happening.ts'
import type { ListFilters } from './list.ts'
import { askedSource } from './network.ts'
import type { Mistake } from './planted.ts'
import type { SimulatedProcess } from './process.ts'

// Loaded in the middle of a history it would take real time.
await import('../../src/cli/file.ts')

interface Backfill {
  fromPage: number
  filters: ListFilters
  restart: boolean
}

/** What a process was started for. Organizations by name; none named means all. */
export type Command =
  | { kind: 'sync'; org: readonly string[]; wait: boolean; refresh: boolean; acceptsRemovals: boolean }
  /** Each job so often, with a pause after each time. */
  | { kind: 'start'; org?: readonly string[]; rounds: number; pauseMs: number }
  | (Backfill & { kind: 'backfill'; org: readonly string[]; wait: boolean })
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
  const sleep: Runtime['sleep'] = config.postgres
    ? (_ms, signal) => runtime.sleep(SELDOM_LOOKS_MS, signal)
    : runtime.sleep
  try {
    // The mirror's clock, as with everybody who shares it.
    const run = createRunner({
      config,
      session: stepped,
      observe: (job) => observing(machine, nameOf(job)),
      runtime: { ...runtime, now, sleep },
    })
    await work({ ...machine, runtime: { ...runtime, now } }, command, stepped.refreshes, run)
  } finally {
    await session.close()
  }
}

/**
 * Who waits for the owner of a list looks four times a second, for an hour at times. Each look is a statement that a real server answers, and
 * almost no other time of a history would be spent so.
 */
const SELDOM_LOOKS_MS = 5000

async function work(
  machine: Machine,
  command: Exclude<Command, { kind: 'resume' }>,
  refreshes: RefreshPlan,
  run: RunJobs,
): Promise<void> {
  const { config } = machine
  const { signal } = machine.process.stop
  const jobs = selectJobs(config, { org: [...(command.org ?? [])], collection: [] })
  if (command.kind === 'start') {
    await runStart(machine, command, jobs, refreshes, run)
    return
  }
  const { wait: waitForOwner } = command
  if (command.kind === 'sync') {
    const { acceptsRemovals: acceptRemovals, refresh } = command
    const how = { plan: syncPlan(config), trigger: 'manual', waitForOwner, acceptRemovals } as const
    await run(jobs, { ...how, instead: refresh ? 'newest' : undefined, signal })
    return
  }
  const { fromPage: firstPage, restart, filters } = command
  const kind = firstPage > 1 || Object.keys(filters).length > 0 ? 'partial' : 'full'
  const plan: HowToRun['plan'] = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart }
  const filtered = jobs.flatMap((job) => withFilters(job, filters))
  await run(filtered, { plan, trigger: 'backfill', waitForOwner, signal })
}

/** The job with the filters of a backfill on top of the configured ones; none where the two contradict each other. */
function withFilters({ organization, job }: SelectedJob, filters: ListFilters): SelectedJob[] {
  const { filters: scope } = job.collection
  if (filters.parity !== undefined && scope.parity !== undefined && scope.parity !== filters.parity) return []
  const collection = { ...job.collection, filters: { ...scope, ...filters }, scope }
  return [{ organization, job: { ...job, collection } }]
}

async function resume({ process, config, runtime, tell }: Machine, names: readonly string[]): Promise<void> {
  const named = config.organizations.filter(({ name }) => names.length === 0 || names.includes(name))
  const ids = named.map(({ id }) => id)
  const mirror = await openMirror({ config, runtime, log: { info: () => {} } })
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

/**
 * `start`, whose scheduler the real clock would drive: the time of each job comes again after a pause, and meanwhile it is
 * refreshed as `start` does it.
 */
async function runStart(
  { process, runtime, config }: Machine,
  { rounds, pauseMs }: Command & { kind: 'start' },
  jobs: readonly SelectedJob[],
  plan: RefreshPlan,
  run: RunJobs,
): Promise<void> {
  const { signal } = process.stop
  const how = { plan: syncPlan(config), trigger: 'schedule', signal } as const
  /** What the scheduler does for a job: never two things at once. */
  const busy = new Map<ScheduledJob, Promise<void>>()

  function begin(job: ScheduledJob, task: () => Promise<void>): Promise<void> {
    const ended = task().finally(() => busy.delete(job))
    busy.set(job, ended)
    return ended
  }

  /** As the runtime's; but whoever dies asleep never wakes, whatever is done about its errors. */
  async function sleep(ms: number, until?: AbortSignal): Promise<void> {
    try {
      await runtime.sleep(ms, until)
    } catch (error) {
      if (!process.isAlive()) await new Promise(() => {})
      throw error
    }
  }

  const over = new AbortController()
  const planned = jobs.map((selected) => {
    const { organization, job } = selected
    const name = `${organization.name} ${job.collection.name}`
    const when = { expression: organization.schedule, timezone: 'UTC', dueAtStart: false }
    return { selected, scheduled: { name, ...when, run: async () => {} } }
  })
  const fresh = planned.filter(({ selected }) => selected.organization.refresh !== false)
  const keeping =
    fresh.length === 0
      ? Promise.resolve()
      : keepFresh({
          jobs: fresh,
          async read(selected) {
            const results = await run([selected], { ...how, waitForOwner: false, instead: 'due' })
            return results.some(({ error }) => error !== null)
          },
          plan,
          scheduler: {
            isRunning: (job) => busy.has(job),
            runBetween(job, task) {
              if (!busy.has(job)) void begin(job, task)
            },
          },
          runtime: { now: runtime.now, sleep },
          signal: AbortSignal.any([signal, over.signal]),
        })
  await Promise.all(
    planned.map(async ({ selected, scheduled }) => {
      for (let round = 0; round < rounds && !signal.aborted; round++) {
        // A refresh may be under way.
        await busy.get(scheduled)
        await begin(scheduled, async () => {
          await run([selected], { ...how, waitForOwner: round === 0 })
        })
        await sleep(pauseMs, signal).catch(() => {})
      }
    }),
  )
  over.abort()
  await keeping
  await Promise.all(busy.values())
}

/** The store as a process uses it: each call has a moment before and after it, and a dead process gets no answer. */
function steppedStore(store: Store, process: SimulatedProcess, tell: Tell): Store {
  /** By run, its job. */
  const runs = new Map<number, { job: string; kind: 'run' | 'refresh' }>()

  function stepped<Values extends unknown[], Result>(
    method: (...values: Values) => Promise<Result>,
    tellOf?: (result: Result, ...values: Values) => void,
  ) {
    return async (...values: Values): Promise<Result> => {
      if (!process.isAlive()) return new Promise(() => {})
      process.step('before mirror call')
      const result = await method(...values)
      tellOf?.(result, ...values)
      process.step('after mirror call')
      return result
    }
  }

  const all = Object.entries(store).map(([name, method]) => [name, stepped(method)])
  return {
    ...(Object.fromEntries(all) as Store),
    acquire: stepped(store.acquire, ({ lease }, job) =>
      tell({ kind: lease ? 'claimed' : 'busy', process, job: nameOf(job) }),
    ),
    release: stepped((lease) => {
      tell({ kind: 'releasing', process, job: nameOf(lease.job) })
      return store.release(lease)
    }),
    beginRun: stepped(store.beginRun, ({ runId: run, walk }, lease) => {
      const job = nameOf(lease.job)
      runs.set(run, { job, kind: 'run' })
      tell({ kind: 'run began', process, job, run, walk: walk.id, resumed: walk.resumed })
    }),
    beginRefresh: stepped(store.beginRefresh, (run, lease, _saved, within) => {
      const job = nameOf(lease.job)
      runs.set(run, { job, kind: 'refresh' })
      const { filters } = lease.job.collection
      tell({ kind: 'refresh began', process, job, run, within: within?.id ?? null, filters })
    }),
    finishRun: stepped(store.finishRun, (_record, { id: run }, { status, errorCode: code }) => {
      const { job, kind = 'run' } = runs.get(run) ?? {}
      if (status === 'refused') tell({ kind: 'run cancelled', process, run })
      else if (job) tell({ kind: `${kind} finished`, process, job, run, status, code })
    }),
  }
}
