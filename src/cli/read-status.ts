import { allowedPerMinute, announcedLimit } from '../api/rate/budget.ts'
import type { Config } from '../config/config.ts'
import { createStatus, type JobPlan, type ListFacts, type MostAge, type Status } from '../report/status.ts'
import { lastAttempt } from '../report/times.ts'
import { nextFireAfter } from '../schedule/cron.ts'
import { type MirrorFacts, neverSynced, type StatusRow } from '../store/core/status.ts'
import { jobKey } from '../text.ts'
import { type MirrorPlace, readFacts, writeFault } from './mirror.ts'
import type { Runtime } from './runtime.ts'
import { budgetKey } from './selection.ts'

/** `config`: null where only the file is known; then schedules, and lists that the file does not hold, are left out. */
export interface StatusOptions extends MirrorPlace {
  /** Epoch milliseconds. */
  now: number
  maxAge?: MostAge | null
  fresh?: MostAge | null
  /** Why the mirror cannot be written; null: it can. */
  unusable?: string | null
}

/** What `status` says of a mirror. Throws MirrorError. */
export async function readStatus(
  runtime: Runtime,
  options: Omit<StatusOptions, 'now' | 'unusable'>,
): Promise<Status> {
  const { database, config } = options
  const facts = await readFacts({ database, config }, runtime)
  const unusable = await writeFault({ database, config })
  return mirrorStatus(facts, { ...options, now: runtime.now(), unusable })
}

/** What `status` says of a mirror. `facts`: null if there is no mirror yet. */
export function mirrorStatus(
  facts: MirrorFacts | null,
  { database, config, now, maxAge = null, fresh = null, unusable = null }: StatusOptions,
): Status {
  const { jobs = [], daemons = [], gates = [], misfits = [], unpublished = null } = facts ?? {}
  return createStatus({
    database,
    config: config?.file ?? null,
    unusable,
    isConfigLost: config?.isLost === true,
    now,
    maxAge,
    fresh,
    misfits,
    unpublished: config?.publish == null ? null : unpublished,
    isShared: config !== null && config.postgres !== null,
    lists: config ? configuredLists(config, jobs, gates, now) : jobs.map(withoutConfig),
    daemons: daemons.map(({ configuration, ...one }) => ({
      ...one,
      outdated: config !== null && configuration !== config.fingerprint,
    })),
  })
}

function withoutConfig(row: StatusRow): ListFacts {
  return { row, plan: null, tokenPlace: null, budget: row.organization_id, perMinute: null }
}

/**
 * The lists of the configuration as it is now, also those that the mirror does not know yet, by its names; the mirror has those of the
 * last sync. Then what left the configuration, as long as it has rows.
 */
function configuredLists(
  config: Config,
  jobs: MirrorFacts['jobs'],
  gates: MirrorFacts['gates'],
  now: number,
): ListFacts[] {
  const known = new Map(jobs.map((row) => [jobKey(row.organization_id, row.collection), row]))
  const limits = new Map(gates.map((gate) => [gate.scope, gate.known]))
  const planOf = createPlanner(config.timezone, now)
  const lists = config.organizations.flatMap((organization) =>
    organization.collections.map(({ name }): ListFacts => {
      const key = jobKey(organization.id, name)
      const row = {
        ...(known.get(key) ?? neverSynced(organization, name)),
        organization: organization.name,
        configured: 1,
      }
      known.delete(key)
      const budget = budgetKey(config, organization.id, row.token)
      return {
        row,
        plan: planOf(organization.schedule, row),
        tokenPlace: organization.tokenPlace,
        budget,
        perMinute: allowedPerMinute(announcedLimit(limits.get(budget) ?? null), config.rateLimit),
      }
    }),
  )
  const names = new Map(config.organizations.map(({ id, name }) => [id, name]))
  const left = [...known.values()].filter(({ rows }) => rows > 0)
  return [
    ...lists,
    ...left.map((row) =>
      withoutConfig({
        ...row,
        organization: names.get(row.organization_id) ?? row.organization,
        configured: 0,
      }),
    ),
  ]
}

/** Returns the times of a list's schedule. They are searched once a schedule: 500 organizations share a few, and a search takes milliseconds. */
function createPlanner(timezone: string, now: number): (schedule: string, row: StatusRow) => JobPlan {
  const next = new Map<string, number | null>()
  return (schedule, row) => {
    if (!next.has(schedule)) next.set(schedule, nextFireAfter(schedule, timezone, now))
    const attempt = lastAttempt(row, now)
    return {
      schedule,
      nextRunAt: next.get(schedule) ?? null,
      dueAt: attempt === null ? null : nextFireAfter(schedule, timezone, attempt, now),
    }
  }
}
