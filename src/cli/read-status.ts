import type { Config } from '../config/config.ts'
import { KnownError } from '../errors.ts'
import { createStatus, type ListFacts, type MostAge, type Status } from '../report/status.ts'
import { lastAttempt } from '../report/verdict.ts'
import { nextFireAfter } from '../schedule/cron.ts'
import { LIST_COLUMNS, type MirrorFacts, neverSynced, type StatusRow } from '../store/core/status.ts'
import { jobKey } from '../text.ts'
import { configOfFile } from './configuration.ts'
import type { OpenMirror } from './mirror.ts'
import { type MirrorPlace, placeOf, readFacts } from './place.ts'
import type { Runtime } from './runtime.ts'

/** `config`: null where only the file is known; then schedules, and lists that the file does not hold, are left out. */
export interface StatusOptions extends MirrorPlace {
  maxAge?: MostAge | null
  fresh?: MostAge | null
}

/** What `status` says of a mirror. Throws MirrorError. */
export async function readStatus(runtime: Runtime, options: StatusOptions): Promise<Status> {
  const facts = await readFacts(options, runtime)
  // Of a server, only it knows.
  const unusable = options.config?.postgres ? null : (await import('./file.ts')).writeFault(options)
  return mirrorStatus(facts, { ...options, now: runtime.now(), unusable })
}

/** The same of a mirror that this process has open: to open its file once more and close it would drop SQLite's locks. */
export async function openStatus(
  session: OpenMirror,
  config: Config,
  runtime: Runtime,
  reason = unusableNow(session),
): Promise<Status> {
  const [facts, unusable] = await Promise.all([session.facts(), reason])
  return mirrorStatus(facts, { ...placeOf(configOfFile(config, runtime)), now: session.now(), unusable })
}

/** Why an open mirror cannot be used now; null if it can. */
export async function unusableNow({ probe }: OpenMirror): Promise<string | null> {
  try {
    return await probe()
  } catch (error) {
    return error instanceof KnownError ? error.message : 'the mirror cannot be read'
  }
}

/**
 * The same of what was read. `facts`: null if there is no mirror yet. `now`: epoch milliseconds. `unusable`: why the mirror cannot be
 * written; null: it can.
 */
function mirrorStatus(
  facts: MirrorFacts | null,
  options: StatusOptions & { now: number; unusable: string | null },
): Status {
  const { database, config, maxAge = null, fresh = null, now, unusable } = options
  const { jobs = [], daemons = [], misfits = [], unpublished = null } = facts ?? {}
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
    columns: LIST_COLUMNS,
    lists: config ? configuredLists(config, jobs, now) : jobs.map(withoutConfig),
    daemons: daemons.map(({ configuration, ...one }) => ({
      ...one,
      outdated: one.running && config !== null && configuration !== config.fingerprint,
    })),
  })
}

function withoutConfig(row: StatusRow): ListFacts {
  return { row, plan: null, tokenPlace: null }
}

/**
 * The lists of the configuration as it is now, also those that the mirror does not know yet, by its names; the mirror has those of the
 * last sync. Then what left the configuration, as long as it has rows.
 */
function configuredLists(
  { organizations, timezone }: Config,
  jobs: MirrorFacts['jobs'],
  now: number,
): ListFacts[] {
  const known = new Map(jobs.map((row) => [jobKey(row.organization_id, row.collection), row]))
  /** Of each schedule: 500 organizations share a few, and a search takes milliseconds. */
  const next = new Map<string, number | null>()
  const lists = organizations.flatMap(({ id, name, collections, schedule, tokenPlace }) => {
    if (!next.has(schedule)) next.set(schedule, nextFireAfter(schedule, timezone, now))
    return collections.map((collection): ListFacts => {
      const key = jobKey(id, collection.name)
      const kept = known.get(key) ?? neverSynced({ id, name }, collection.name)
      known.delete(key)
      const row = { ...kept, organization: name, configured: 1 }
      const attempt = lastAttempt(row, now)
      const dueAt = attempt === null ? null : nextFireAfter(schedule, timezone, attempt, now)
      return { row, plan: { schedule, nextRunAt: next.get(schedule) ?? null, dueAt }, tokenPlace }
    })
  })
  const left = [...known.values()].filter(({ rows }) => rows > 0)
  return [...lists, ...left.map((row) => withoutConfig({ ...row, configured: 0 }))]
}
