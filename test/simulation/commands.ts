import { pino } from 'pino'
import type { HttpGet } from '../../src/api/http.ts'
import { runScheduled } from '../../src/cli/commands/start.ts'
import { openMirror } from '../../src/cli/mirror.ts'
import { createJobRunner } from '../../src/cli/run-jobs.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import { type ConfiguredJob, selectJobs, selectOrganizations } from '../../src/cli/selection.ts'
import { type CommandSession, openSession } from '../../src/cli/session.ts'
import type { Config } from '../../src/config/config.ts'
import type { JobEvent } from '../../src/sync/job.ts'
import type { Store } from '../../src/sync/store.ts'
import type { Job, Observe } from '../../src/sync/types.ts'
import { nameOf, type Tell } from './happening.ts'
import type { ListFilters } from './list.ts'
import type { Mistake } from './planted.ts'
import { never, type SimulatedProcess } from './process.ts'

// Loaded in the middle of a history they would take real time.
await import('../../src/cli/file.ts')
await import('../../src/cli/postgres.ts')

/** What a process was started for. Organizations by name; none named means all. */
export type Command = { org: string[] } & (
  | { kind: 'sync'; wait: boolean; refresh: boolean; acceptsRemovals: boolean }
  /** Until a signal. */
  | { kind: 'start' }
  | { kind: 'backfill'; wait: boolean; fromPage: number; filters: ListFilters; restart: boolean }
  | { kind: 'resume' }
)

/** A sync of everything that waits for its turn. */
export const SYNC: Command & { kind: 'sync' } = {
  kind: 'sync',
  org: [],
  wait: true,
  refresh: false,
  acceptsRemovals: false,
}

interface Machine {
  process: SimulatedProcess
  /** What is wrong with the program. */
  mistake: Mistake
  config: Config
  runtime: Runtime
  exchange: HttpGet
  tell: Tell
}

const SILENT = pino({ level: 'silent' })

/**
 * Who waits for the owner of a list looks four times a second, for an hour at times. Each look is a statement that a real server answers, and
 * almost no other time of a history would be spent so.
 */
const SELDOM_LOOKS_MS = 5000

/** Does what the command of this name does, put together as `openCommand` does it. */
export async function runCommand(machine: Machine, command: Command): Promise<void> {
  const { process, mistake, config, runtime, exchange, tell } = machine
  if (command.kind === 'resume') {
    const organizations = selectOrganizations(config, command.org).map(({ id }) => id)
    const mirror = await openMirror({ config, runtime, log: SILENT })
    await mirror.tokens.resume(organizations)
    tell({ kind: 'resumed', process, organizations })
    return mirror.close()
  }
  const { openQueue: _ofWorkers, ...opened } = await openSession({
    config,
    runtime,
    exchange: mistake.exchange?.(exchange) ?? exchange,
    logger: SILENT,
  })
  const { now } = opened
  const store = steppedStore(mistake.store?.(opened.store, now) ?? opened.store, process, tell)
  const observe = (job: Job) => observing(machine, nameOf(job))
  const session = { ...opened, store, logger: SILENT }
  const sleep: Runtime['sleep'] = config.postgres
    ? (_ms, signal) => runtime.sleep(SELDOM_LOOKS_MS, signal)
    : runtime.sleep
  const runner = createJobRunner({ config, session, observe, runtime: { ...runtime, now, sleep } })
  try {
    await work(machine, command, { ...session, ...runner })
  } finally {
    await session.close()
  }
}

async function work(
  { config, runtime }: Machine,
  command: Exclude<Command, { kind: 'resume' }>,
  session: CommandSession,
): Promise<unknown> {
  const { signal } = runtime
  const jobs = selectJobs(config, { org: command.org, collection: [] })
  if (command.kind === 'start') return runScheduled({ config, runtime, listening: null, jobs }, session)
  const { wait: waitForOwner } = command
  if (command.kind === 'sync') {
    const { acceptsRemovals: acceptRemovals, refresh } = command
    const how = { trigger: 'manual', waitForOwner, acceptRemovals } as const
    return session.runJobs(jobs, { ...how, instead: refresh ? 'newest' : undefined, signal })
  }
  const { fromPage: firstPage, restart, filters } = command
  const kind = firstPage > 1 || filters.parity !== undefined ? 'partial' : 'full'
  const plan = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart } as const
  const filtered = jobs.flatMap((job) => withFilters(job, filters))
  return session.runJobs(filtered, { plan, trigger: 'backfill', waitForOwner, signal })
}

/** The job with the filters of a backfill on top of the configured ones; none where the two contradict each other. */
function withFilters(job: ConfiguredJob, filters: ListFilters): ConfiguredJob[] {
  const { filters: scope } = job.collection
  if (filters.parity !== undefined && scope.parity !== undefined && scope.parity !== filters.parity) return []
  const collection = { ...job.collection, filters: { ...scope, ...filters }, scope }
  return [{ ...job, collection }]
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

/** The store as a process uses it: each call has a moment before and after it, and a dead process gets no answer. */
function steppedStore(store: Store, process: SimulatedProcess, tell: Tell): Store {
  const jobOf = new Map<number, string>()

  function stepped<Values extends unknown[], Result>(
    method: (...values: Values) => Promise<Result>,
    tellOf?: (result: Result, ...values: Values) => void,
  ) {
    return async (...values: Values): Promise<Result> => {
      if (!process.survives('before mirror call')) return never()
      const result = await method(...values)
      tellOf?.(result, ...values)
      return process.survives('after mirror call') ? result : never()
    }
  }

  const all = Object.entries(store).map(([name, method]) => [name, stepped(method)])
  return {
    ...(Object.fromEntries(all) as Store),
    acquire: stepped(store.acquire, ({ lease }, acquired) => {
      const job = nameOf(acquired)
      process.refreshing.delete(job)
      tell({ kind: lease ? 'claimed' : 'busy', process, job })
    }),
    release: stepped((lease) => {
      tell({ kind: 'releasing', process, job: nameOf(lease.job) })
      return store.release(lease)
    }),
    beginRun: stepped(store.beginRun, ({ runId: run, walk }, lease) => {
      const job = nameOf(lease.job)
      jobOf.set(run, job)
      tell({ kind: 'run began', process, job, run, walk: walk.id, resumed: walk.resumed })
    }),
    beginRefresh: stepped(store.beginRefresh, (run, lease, _saved, within) => {
      const job = nameOf(lease.job)
      jobOf.set(run, job)
      process.refreshing.add(job)
      const { filters } = lease.job.collection
      tell({ kind: 'refresh began', process, job, run, within: within?.id ?? null, filters })
    }),
    finishRun: stepped(store.finishRun, (_record, { id: run }, { status, errorCode: code }) => {
      const job = jobOf.get(run) ?? ''
      const kind = process.refreshing.delete(job) ? 'refresh finished' : 'run finished'
      tell(
        status === 'refused'
          ? { kind: 'run cancelled', process, run }
          : { kind, process, job, run, status, code },
      )
    }),
  }
}
