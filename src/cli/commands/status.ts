import type { Config } from '../../config/config.ts'
import { parseDuration } from '../../config/duration.ts'
import { UsageError } from '../../errors.ts'
import { jobStatus, neverSynced, type Status, statusText } from '../../report/status.ts'
import { openReader } from '../../store/sqlite/read/reader.ts'
import type { StatusRow } from '../../store/sqlite/read/status.ts'
import { shellWord } from '../../text.ts'
import { type Globals, readConfig } from '../config-file.ts'
import type { Runtime } from '../runtime.ts'

interface StatusOptions {
  json?: boolean
  maxAge?: string
}

/** `status`: 0 whatever it reports; with `--max-age` 1 if a configured list is older, or was never read whole. */
export async function run(runtime: Runtime, globals: Globals, options: StatusOptions): Promise<number> {
  const maxAge = options.maxAge === undefined ? null : readMaxAge(options.maxAge)
  const config = readConfig(runtime, globals, 'leave')
  const program =
    globals.config === undefined ? 'admin-mirror' : `admin-mirror --config ${shellWord(globals.config)}`
  const report = await readStatus(config, runtime, program, maxAge)
  runtime.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : statusText(report, program))
  return report.jobs.some((job) => job.too_old) ? 1 : 0
}

interface MaxAge {
  typed: string
  ms: number
}

function readMaxAge(typed: string): MaxAge {
  const ms = parseDuration(typed)
  if (ms === null) throw new UsageError(`--max-age ${typed}: write a duration like 30m, 24h or 2d`)
  return { typed, ms }
}

/** The longest pause that a server can ask for. A later time comes from a wrong clock. */
const LONGEST_PAUSE_MS = 86_400_000

async function readStatus(
  config: Config,
  runtime: Runtime,
  program: string,
  maxAge: MaxAge | null,
): Promise<Status> {
  const now = runtime.now()
  const reader = config.postgres
    ? await (await import('../postgres/status.ts')).readPostgresStatus(config, runtime)
    : openReader(config.database)
  try {
    const known = reader?.status() ?? []
    const closedUntil = Date.parse(reader?.gateClosedUntil() ?? '')
    const isPause = closedUntil > now && closedUntil <= now + LONGEST_PAUSE_MS
    return {
      database: config.database,
      now: new Date(now).toISOString(),
      waiting_until: isPause ? new Date(closedUntil).toISOString() : null,
      max_age: maxAge?.typed ?? null,
      jobs: [...asConfigured(config, known), ...unknownJobs(config, known)].map((row) =>
        jobStatus(row, now, program, maxAge?.ms),
      ),
    }
  } finally {
    reader?.close()
  }
}

/**
 * The rows with the names of the present configuration; the mirror has those of the last sync. Keeps a job that is not
 * configured as long as it has rows.
 */
function asConfigured(config: Config, known: readonly StatusRow[]): StatusRow[] {
  return known
    .map((row) => {
      const organization = config.organizations.find(({ id }) => id === row.organization_id)
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
function unknownJobs(config: Config, known: readonly StatusRow[]): StatusRow[] {
  const isKnown = (id: string, collection: string) =>
    known.some((row) => row.organization_id === id && row.collection === collection)
  return config.organizations.flatMap((organization) =>
    organization.collections
      .filter(({ name }) => !isKnown(organization.id, name))
      .map(({ name }) => neverSynced(organization, name)),
  )
}
