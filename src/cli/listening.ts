import fs from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }
import type { AnswerNote } from '../api/client.ts'
import { budgetOf } from '../api/rate/budget.ts'
import { allowedPerMinute, knownLimit } from '../api/rate/decision.ts'
import { MINUTE_MS } from '../api/rate/window.ts'
import type { Config } from '../config/config.ts'
import { KnownError, MirrorError } from '../errors.ts'
import { openListener } from '../listener/listener.ts'
import { type Counters, createCounters } from '../listener/metrics.ts'
import type { BudgetUse, Overview, Published } from '../listener/overview.ts'
import type { Scheduler } from '../schedule/scheduler.ts'
import type { StoredGate } from '../store/core/overview.ts'
import type { JobResult } from '../sync/job.ts'
import { jobKey, pasteable } from '../text.ts'
import type { ServedMirror } from './mirror.ts'
import { mirrorStatus } from './read-status.ts'
import type { Runtime } from './runtime.ts'
import { budgetKey } from './selection.ts'
import type { CommandSession } from './with-session.ts'

export type Listening = Awaited<ReturnType<typeof listenFor>>

/** The listener of a `start`, on the configured address. Throws UsageError if the port cannot be used. */
export async function listenFor(
  config: Config,
  address: { host: string; port: number },
  runtime: Runtime,
  configOption: string,
) {
  const { now, sleep } = runtime
  const listener = await openListener({ ...address, now, sleep })
  const counters = createCounters()
  const lastHour = createLastHour(now)
  let source: ReturnType<typeof createSource> | null = null
  return {
    onAnswer({ job: { organization }, status }: AnswerNote): void {
      counters.request(organization.name, status)
      lastHour.note(organization.id, status)
    },
    onResult(result: JobResult): void {
      const { job, run, error } = result
      const list = { organization: job.organization.name, collection: job.collection.name }
      counters.run(list, runEnd(result), run)
      source?.onResult({ run, error })
    },
    /** From now on it answers from this mirror. */
    async serve(session: CommandSession, scheduler: Scheduler): Promise<void> {
      source = createSource({
        served: await session.serve(),
        config,
        scheduler,
        counters,
        lastHour: lastHour.requests,
        configOption,
        now,
      })
      listener.serve(source, (error) =>
        session.logger.error({ event: 'listener_failed', err: error }, 'the listener failed to answer'),
      )
      session.logger.info({ event: 'listening', url: listener.url }, 'listening')
    },
    close: listener.close,
  }
}

function runEnd({ error, run }: Pick<JobResult, 'error' | 'run'>) {
  if (error === null) return 'succeeded'
  if (error.code === 'INTERRUPTED') return 'interrupted'
  return run === null ? 'refused' : 'failed'
}

interface SourceOptions {
  served: ServedMirror
  config: Config
  scheduler: Pick<Scheduler, 'isTicking'>
  counters: Counters
  /** By organization. */
  lastHour: () => ReadonlyMap<string, RequestSums>
  /** See `typedConfig`: for commands that users paste. */
  configOption: string
  now: () => number
}

/** For how long a column is new. */
const NEW_MS = 7 * 86_400_000

/** What the listener answers from. */
export function createSource(options: SourceOptions) {
  const { served, config, scheduler, counters, lastHour, configOption, now } = options
  const { database } = config
  const startedAt = new Date(now()).toISOString()
  let fault: string | null = null

  async function unusable(): Promise<string | null> {
    try {
      await served.probe()
      return fault ?? served.writeFault()
    } catch (error) {
      return error instanceof KnownError ? error.message : `${database} cannot be read`
    }
  }

  async function overview(): Promise<Overview> {
    const time = now()
    const [known, reason] = await Promise.all([served.overview(time - NEW_MS), unusable()])
    const { facts, runs, gates, tokensUsed, newColumns, size } = known
    return {
      version: manifest.version,
      started_at: startedAt,
      status: pasteable(mirrorStatus(facts, { database, config, now: time, unusable: reason }), configOption),
      runs: new Map(runs.map((one) => [jobKey(one.organization_id, one.collection), one])),
      budgets: budgetUses({ config, gates, tokensUsed, lastHour: lastHour() }),
      counters,
      new_columns: newColumns,
      size,
      published: config.publish === null ? null : published(config.publish),
    }
  }

  return {
    health: async () => ({
      stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
      unusable: await unusable(),
    }),
    overview,
    /** Notes whether the run could use the mirror. */
    onResult({ error, run }: Pick<JobResult, 'error' | 'run'>): void {
      if (error instanceof MirrorError) fault = error.message
      else if (run !== null) fault = null
    },
  }
}

function published(file: string): Published {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) return { file, created_at: null, bytes: null }
  return { file, created_at: stat.mtime.toISOString(), bytes: stat.size }
}

type RequestSums = Pick<BudgetUse, 'requests' | 'throttled'>

const MINUTES = 60

/** Counts the requests of the last hour by the minute. */
export function createLastHour(now: () => number) {
  const minutes = new Map<string, (RequestSums & { minute: number })[]>()
  const minuteNow = () => Math.floor(now() / MINUTE_MS)
  // Minutes in the future were counted before the clock was set back.
  const recent = (id: string, minute: number) =>
    (minutes.get(id) ?? []).filter((one) => one.minute <= minute && one.minute > minute - MINUTES)
  return {
    note(id: string, status: number | null): void {
      const minute = minuteNow()
      const known = recent(id, minute)
      const last = known.findLast((one) => one.minute === minute)
      const sums = last ?? { minute, requests: 0, throttled: 0 }
      sums.requests++
      sums.throttled += Number(status === 429)
      minutes.set(id, last ? known : [...known, sums])
    },
    /** By organization. */
    requests: () => new Map([...minutes.keys()].map((id) => [id, sumOf(recent(id, minuteNow()))])),
  }
}

function sumOf(sums: readonly RequestSums[]): RequestSums {
  return {
    requests: sums.reduce((sum, { requests }) => sum + requests, 0),
    throttled: sums.reduce((sum, { throttled }) => sum + throttled, 0),
  }
}

interface BudgetFacts {
  config: Pick<Config, 'organizations' | 'rateLimit'>
  gates: readonly StoredGate[]
  /** By organization. */
  tokensUsed: ReadonlyMap<string, string | null>
  /** By organization. */
  lastHour: ReadonlyMap<string, RequestSums>
}

/** Which organizations spend which budget, and how much of it. The key of a budget may be the fingerprint of a token, so none is returned. */
export function budgetUses({ config, gates, tokensUsed, lastHour }: BudgetFacts): BudgetUse[] {
  const { rateLimit, organizations } = config
  const known = new Map(gates.map((gate) => [gate.scope, gate.known]))
  const groups = Map.groupBy(organizations, ({ id }) => budgetKey(config, id, tokensUsed.get(id) ?? null))
  return [...groups].map(([key, members]) => {
    const sums = sumOf(members.flatMap(({ id }) => lastHour.get(id) ?? []))
    return {
      organizations: members.map(({ name }) => name),
      ...sums,
      per_minute: allowedPerMinute(knownLimit(budgetOf(known.get(key) ?? null, 0)), rateLimit),
    }
  })
}
