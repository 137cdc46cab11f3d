import { parseDuration } from '../../config/fields.ts'
import { UsageError, worstExitCode } from '../../errors.ts'
import { statusText } from '../../report/status-text.ts'
import type { JobFreshness } from '../../store/core/publication.ts'
import { type DatabaseOption, readTarget } from '../mirror.ts'
import { jsonText } from '../output/results.ts'
import { type AgeLimit, readStatus } from '../read-status.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface StatusCommandOptions extends DatabaseOption {
  json?: boolean
  check?: boolean
  maxAge?: string
  fresh?: string
}

/**
 * `status`: 0 whatever it reports; 1 if a configured list is older than `--max-age` or `--fresh` allows; with `--check` the code
 * of what is wrong.
 */
export async function run(
  runtime: Runtime,
  globals: Globals,
  options: StatusCommandOptions,
): Promise<number> {
  const maxAge = ageLimit('--max-age', options.maxAge)
  const fresh = ageLimit('--fresh', options.fresh)
  const { database, config, configOption, queryCommand } = await readTarget(
    runtime,
    globals,
    options.database,
  )
  // Only a published file has its freshness beside it; a mirror holds its own.
  const beside = config ? null : await readBeside(database, runtime)
  const report = await readStatus(runtime, { database, beside, config, configOption, maxAge, fresh })
  runtime.stdout.write(options.json ? jsonText(report) : statusText(report, { configOption, queryCommand }))
  const isOld = report.jobs.some((job) => job.too_old || job.too_stale)
  return worstExitCode([isOld ? 1 : 0, options.check ? report.check_exit_code : 0])
}

async function readBeside(copy: string, { signal }: Runtime): Promise<JobFreshness[] | null> {
  const { freshnessBeside } = await import('../../store/sqlite/publish/numbers.ts')
  return freshnessBeside(copy, signal)
}

function ageLimit(option: string, typed: string | undefined): AgeLimit | null {
  if (typed === undefined) return null
  const ms = parseDuration(typed)
  if (ms === null) throw new UsageError(`${option} ${typed}: write a duration like 30m, 24h or 2d`)
  return { typed, ms }
}
