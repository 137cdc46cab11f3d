import { parseDuration } from '../../config/schema.ts'
import { UsageError, worstExitCode } from '../../errors.ts'
import type { MostAge } from '../../report/status.ts'
import { statusText } from '../../report/status-text.ts'
import { printableJson } from '../../text.ts'
import { type DatabaseOption, readTarget } from '../mirror.ts'
import { readStatus } from '../read-status.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends DatabaseOption {
  json?: boolean
  check?: boolean
  maxAge?: string
  fresh?: string
}

/**
 * `status`: 0 whatever it reports; 1 if a configured list is older than `--max-age` or `--fresh` allows; with `--check` the code
 * of what is wrong.
 */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const maxAge = durationOf('--max-age', options.maxAge)
  const fresh = durationOf('--fresh', options.fresh)
  const target = await readTarget(runtime, globals, options.database)
  const { database, config, queryCommand } = target
  const report = await readStatus(runtime, { database, config, maxAge, fresh })
  const text = options.json
    ? `${printableJson(JSON.stringify(report, null, 2))}\n`
    : statusText(report, queryCommand)
  runtime.stdout.write(text)
  const isOld = report.jobs.some((job) => job.too_old || job.too_stale)
  return worstExitCode([isOld ? 1 : 0, options.check ? report.check_exit_code : 0])
}

function durationOf(option: string, typed: string | undefined): MostAge | null {
  if (typed === undefined) return null
  const ms = parseDuration(typed)
  if (ms === null) throw new UsageError(`${option} ${typed}: write a duration like 30m, 24h or 2d`)
  return { typed, ms }
}
