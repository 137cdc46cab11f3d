import { announcedLimit } from '../api/rate/budget.ts'
import { allowedPerMinute } from '../api/rate/decision.ts'
import type { Config } from '../config/config.ts'
import type { OrganizationConfig } from '../config/organizations.ts'
import { misfitNotes } from '../report/misfits.ts'
import { refreshText } from '../report/refreshes.ts'
import { createStatus, type JobPlan, type Status } from '../report/status.ts'
import { lastAttempt } from '../report/verdict.ts'
import { nextFireAfter } from '../schedule/cron.ts'
import type { DaemonRecord } from '../store/core/leases.ts'
import type { MisfitColumn } from '../store/core/misfits.ts'
import { neverSynced, type StatusRow, type StoredGate } from '../store/core/status.ts'
import type { QueueDepth } from '../store/postgres/read/status.ts'
import { jobKey } from '../text.ts'
import { kindOf, type MirrorPlace } from './mirror.ts'
import type { Runtime } from './runtime.ts'
import { budgetKey } from './selection.ts'
import type { TypedDuration } from './typed-duration.ts'

/** `config`: null where only the file is known; then schedules, and lists that the file does not hold, are left out. */
export interface StatusOptions extends MirrorPlace {
  /** Epoch milliseconds. */
  now: number
  maxAge?: TypedDuration | null
  fresh?: TypedDuration | null
  /** Why the mirror cannot be written; null: it can. */
  unusable?: string | null
}

/** What `status` knows of a mirror of either kind, all of one moment. */
export interface MirrorFacts {
  jobs: readonly StatusRow[]
  daemons: readonly DaemonRecord[]
  /** What is known of each rate budget. */
  gates: readonly StoredGate[]
  misfits: readonly MisfitColumn[]
  /** Of a mirror that several workers share. */
  queue: QueueDepth | null
}

/** What `status` says of a mirror. Throws MirrorError. */
export async function readStatus(
  runtime: Runtime,
  options: Omit<StatusOptions, 'now' | 'unusable'>,
): Promise<Status> {
  const { database, config } = options
  const kind = await kindOf(config)
  const facts = await kind.readFacts({ database, config }, runtime)
  const unusable = kind.writeFault({ database, config })
  return mirrorStatus(facts, { ...options, now: runtime.now(), unusable })
}

/** The configured organizations, by id. */
type Organizations = ReadonlyMap<string, OrganizationConfig>

/** What `status` says of a mirror. `facts`: null if there is no mirror yet. */
export function mirrorStatus(
  facts: MirrorFacts | null,
  { database, config, now, maxAge = null, fresh = null, unusable = null }: StatusOptions,
): Status {
  const known = facts?.jobs ?? []
  const byId = new Map(config?.organizations.map((organization) => [organization.id, organization]))
  const rows = config ? [...asConfigured(byId, known), ...unknownJobs(config, known)] : known
  const planOf = config ? createPlanner(byId, config.timezone, now) : () => null
  const limits = new Map(facts?.gates.map((gate) => [gate.scope, gate.known]))
  return createStatus({
    database,
    unusable,
    now,
    queue: facts?.queue ?? null,
    timezone: config?.timezone ?? null,
    max_age: maxAge?.typed ?? null,
    maxAgeMs: maxAge?.ms ?? null,
    fresh: fresh?.typed ?? null,
    freshMs: fresh?.ms ?? null,
    notes: [...(config ? refreshSentences(rows, byId, config) : []), ...misfitNotes(facts?.misfits ?? [])],
    lists: rows.map((row) => {
      const budget = config ? budgetKey(config, row.organization_id, row.token) : row.organization_id
      return {
        row,
        plan: planOf(row),
        tokenPlace: byId.get(row.organization_id)?.tokenPlace ?? null,
        budget,
        perMinute: config
          ? allowedPerMinute(announcedLimit(limits.get(budget) ?? null), config.rateLimit)
          : null,
      }
    }),
    daemons: (facts?.daemons ?? []).map(({ configuration, ...one }) => ({
      ...one,
      outdated: config !== null && configuration !== config.fingerprint,
    })),
  })
}

/** Searches once a schedule: 500 organizations share a few, and a search takes milliseconds. */
function oncePerSchedule<T>(search: (schedule: string) => T): (schedule: string) => T {
  const found = new Map<string, T>()
  return (schedule) => {
    if (!found.has(schedule)) found.set(schedule, search(schedule))
    return found.get(schedule) as T
  }
}

/** Returns the times of a job's schedule. */
function createPlanner(
  byId: Organizations,
  timezone: string,
  now: number,
): (row: StatusRow) => JobPlan | null {
  const nextRun = oncePerSchedule((schedule) => nextFireAfter(schedule, timezone, now))
  return (row) => {
    const schedule = byId.get(row.organization_id)?.schedule
    if (schedule === undefined || row.configured !== 1) return null
    const attempt = lastAttempt(row, now)
    return {
      schedule,
      nextRunAt: nextRun(schedule),
      dueAt: attempt === null ? null : nextFireAfter(schedule, timezone, attempt, now),
    }
  }
}

/** A sentence for each budget whose lists were refreshed. */
function refreshSentences(
  rows: readonly StatusRow[],
  byId: Organizations,
  config: Pick<Config, 'rateLimit'>,
): string[] {
  const lists = rows.filter(
    (row) => row.configured === 1 && (byId.get(row.organization_id)?.refresh ?? false) !== false,
  )
  const budgetOf = ({ organization_id: id, token }: StatusRow) => budgetKey(config, id, token)
  return [...Map.groupBy(lists, budgetOf).values()].flatMap(refreshText)
}

/**
 * The rows with the names of the present configuration; the mirror has those of the last sync. Keeps a job that is not
 * configured as long as it has rows.
 */
function asConfigured(byId: Organizations, known: readonly StatusRow[]): StatusRow[] {
  return known
    .map((row) => {
      const organization = byId.get(row.organization_id)
      const isConfigured = organization?.collections.some(({ name }) => name === row.collection) === true
      return {
        ...row,
        organization: organization?.name ?? row.organization,
        configured: isConfigured ? 1 : 0,
      }
    })
    .filter(({ configured, rows }) => configured === 1 || rows > 0)
}

/** The jobs that the configuration got after the last sync. */
function unknownJobs(
  { organizations }: Pick<Config, 'organizations'>,
  known: readonly StatusRow[],
): StatusRow[] {
  const names = new Set(known.map((row) => jobKey(row.organization_id, row.collection)))
  return organizations.flatMap((organization) =>
    organization.collections
      .filter(({ name }) => !names.has(jobKey(organization.id, name)))
      .map(({ name }) => neverSynced(organization, name)),
  )
}
