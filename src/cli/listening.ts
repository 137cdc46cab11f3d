import fs from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }
import type { AnswerNote } from '../api/client.ts'
import { budgetOf } from '../api/rate/budget.ts'
import { allowedPerMinute, knownLimit } from '../api/rate/decision.ts'
import type { Config } from '../config/config.ts'
import { KnownError, MirrorError } from '../errors.ts'
import { openListener } from '../listener/listener.ts'
import {
  type BudgetUse,
  type Counters,
  jobKey,
  type Overview,
  type Published,
  type Source,
} from '../listener/overview.ts'
import type { Scheduler } from '../schedule/scheduler.ts'
import type { StoredGate } from '../store/core/overview.ts'
import { readNumbers } from '../store/sqlite/publish/numbers.ts'
import { numbersFile } from '../store/sqlite/publish/place.ts'
import type { JobResult } from '../sync/job.ts'
import { budgetKey } from './budget-key.ts'
import type { ServedMirror } from './mirror.ts'
import { statusOf } from './read-status.ts'
import type { Runtime } from './runtime.ts'
import type { CommandSession } from './with-session.ts'

/** The listener of a `start`. */
export interface Listening {
  onAnswer(answer: AnswerNote): void
  onResult(result: JobResult): void
  /** From now on it answers from this mirror. */
  serve(session: CommandSession, scheduler: Scheduler): Promise<void>
  close(): Promise<void>
}

/** Listens where the configuration says. Throws UsageError if the port cannot be had. */
export async function listenFor(
  config: Config,
  address: { host: string; port: number },
  runtime: Runtime,
  configOption: string,
): Promise<Listening> {
  const { now, sleep, every } = runtime
  const listener = await openListener({ ...address, now, sleep, every })
  const counts = createCounts(now)
  let source: MirrorSource | null = null
  return {
    onAnswer: counts.onAnswer,
    onResult(result) {
      counts.onResult(result)
      source?.onResult(result)
    },
    async serve(session, scheduler) {
      source = createSource({ served: await session.serve(), config, scheduler, counts, configOption, now })
      listener.serve(source, (error) =>
        session.logger.error({ event: 'listener_failed', err: error }, 'the listener failed to answer'),
      )
      session.logger.info({ event: 'listening', url: listener.url }, 'listening')
    },
    close: listener.close,
  }
}

interface SourceOptions {
  served: ServedMirror
  config: Config
  scheduler: Pick<Scheduler, 'isTicking'>
  counts: Counts
  /** See `typedConfig`: for commands that users paste. */
  configOption: string
  now: () => number
}

interface MirrorSource extends Source {
  /** Notes whether the run could use the mirror. */
  onResult(result: Pick<JobResult, 'error' | 'run'>): void
}

/** For how long a column is new. */
const NEW_MS = 7 * 86_400_000

/** What the listener answers from. */
export function createSource(options: SourceOptions): MirrorSource {
  const { served, config, scheduler, counts, configOption, now } = options
  const { database, organizations } = config
  const startedAt = new Date(now()).toISOString()
  const names = new Map(organizations.map(({ id, name }) => [id, name]))
  let fault: string | null = null

  async function unusable(): Promise<string | null> {
    try {
      await served.probe()
      return fault ?? served.unwritable()
    } catch (error) {
      return error instanceof KnownError ? error.message : `${database} cannot be read`
    }
  }

  async function overview(): Promise<Overview> {
    const time = now()
    const [known, reason] = await Promise.all([served.overview(time - NEW_MS), unusable()])
    const { reader, runs, gates, tokensUsed, newColumns, size } = known
    return {
      version: manifest.version,
      started_at: startedAt,
      status: statusOf(reader, {
        database,
        config,
        now: time,
        configOption,
        unusable: reason,
      }),
      runs: new Map(runs.map((one) => [jobKey(one), one])),
      budgets: budgetUses({ config, gates, tokensUsed, lastHour: counts.lastHour() }),
      counters: counts.counters((id) => names.get(id) ?? id),
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
    onResult({ error, run }) {
      if (error instanceof MirrorError) fault = error.message
      else if (run !== null) fault = null
    },
  }
}

function published(file: string): Published {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) return { file, created_at: null, current_at: null, bytes: null }
  const current = readNumbers(numbersFile(fs.realpathSync(file)))?.current_at ?? null
  return { file, created_at: stat.mtime.toISOString(), current_at: current, bytes: stat.size }
}

/** What this process did since its start, counted for metrics. */
export interface Counts {
  onAnswer(answer: AnswerNote): void
  onResult(result: JobResult): void
  counters(organizationName: (organizationId: string) => string): Counters
  /** Requests of the last hour, and how many of these were answered with 429, by organization. */
  lastHour(): Map<string, HourOfRequests>
}

interface HourOfRequests {
  requests: number
  refused: number
}

const MINUTE_MS = 60_000
const MINUTES = 60

export function createCounts(now: () => number): Counts {
  const requests = new Map<string, Map<string, number>>()
  const runs = new Map<string, Counters['runs'][number]>()
  /** The minutes of the last hour, by organization; the oldest first. */
  const minutes = new Map<string, (HourOfRequests & { minute: number })[]>()

  function countMinute(organizationId: string, isRefused: boolean): void {
    const minute = Math.floor(now() / MINUTE_MS)
    const known = (minutes.get(organizationId) ?? []).filter((one) => isOfLastHour(one, minute))
    const last = known.at(-1)
    if (last?.minute === minute) {
      last.requests++
      last.refused += Number(isRefused)
    } else known.push({ minute, requests: 1, refused: Number(isRefused) })
    minutes.set(organizationId, known)
  }

  return {
    onAnswer({ job, status }) {
      const organizationId = job.organization.id
      const name = status === null ? 'error' : String(status)
      const known = requests.get(organizationId) ?? new Map<string, number>()
      known.set(name, (known.get(name) ?? 0) + 1)
      requests.set(organizationId, known)
      countMinute(organizationId, status === 429)
    },
    onResult({ job, run, error }) {
      const status = error === null ? 'succeeded' : resultOf(error.code, run !== null)
      const { organization, collection } = job
      const name = `${organization.id} ${collection.name} ${status}`
      const known = runs.get(name)
      runs.set(name, {
        organization: organization.name,
        collection: collection.name,
        status,
        count: (known?.count ?? 0) + 1,
        retries: (known?.retries ?? 0) + (run?.retries ?? 0),
        wait_seconds: (known?.wait_seconds ?? 0) + (run?.rateLimitWaitMs ?? 0) / 1000,
      })
    },
    counters: (organizationName) => ({
      requests: [...requests].flatMap(([id, byStatus]) =>
        [...byStatus].map(([status, count]) => ({ organization: organizationName(id), status, count })),
      ),
      runs: [...runs.values()],
    }),
    lastHour() {
      const minute = Math.floor(now() / MINUTE_MS)
      return new Map(
        [...minutes].map(([id, all]) => [id, sumOf(all.filter((one) => isOfLastHour(one, minute)))]),
      )
    },
  }
}

/** A minute after the present one was counted before the clock was set back. */
function isOfLastHour(one: { minute: number }, minute: number): boolean {
  return one.minute <= minute && one.minute > minute - MINUTES
}

function sumOf(minutes: readonly HourOfRequests[]): HourOfRequests {
  const sum = { requests: 0, refused: 0 }
  for (const { requests, refused } of minutes) {
    sum.requests += requests
    sum.refused += refused
  }
  return sum
}

function resultOf(code: string, isBegun: boolean): string {
  if (code === 'INTERRUPTED') return 'interrupted'
  return isBegun ? 'failed' : 'refused'
}

interface BudgetFacts {
  config: Pick<Config, 'organizations' | 'rateLimit'>
  gates: readonly StoredGate[]
  /** By organization. */
  tokensUsed: ReadonlyMap<string, string | null>
  /** By organization. */
  lastHour: ReadonlyMap<string, HourOfRequests>
}

/** Who spends which budget, and how much of it. A key may be the fingerprint of a token, so none is returned. */
export function budgetUses({ config, gates, tokensUsed, lastHour }: BudgetFacts): BudgetUse[] {
  const { rateLimit, organizations } = config
  const known = new Map(gates.map((gate) => [gate.scope, gate.known]))
  const groups = Map.groupBy(organizations, ({ id }) => budgetKey(config, id, tokensUsed.get(id) ?? null))
  return [...groups].map(([key, members]) => {
    const hours = members.flatMap(({ id }) => lastHour.get(id) ?? [])
    return {
      organizations: members.map(({ name }) => name),
      requests: hours.reduce((sum, { requests }) => sum + requests, 0),
      refused: hours.reduce((sum, { refused }) => sum + refused, 0),
      per_minute: allowedPerMinute(knownLimit(budgetOf(known.get(key) ?? null, 0)), rateLimit),
    }
  })
}
