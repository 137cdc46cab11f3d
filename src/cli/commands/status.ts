import { worstExitCode } from '../../errors.ts'
import { statusText } from '../../report/status-text.ts'
import { printableJson } from '../../text.ts'
import { type DatabaseOption, readTarget } from '../mirror.ts'
import { readStatus } from '../read-status.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { typedDuration } from '../typed-duration.ts'

interface Options extends DatabaseOption {
  json?: boolean
  check?: boolean
  maxAge?: string
  fresh?: string
}

const DURATIONS = '30m, 24h or 2d'

/**
 * `status`: 0 whatever it reports; 1 if a configured list is older than `--max-age` or `--fresh` allows; with `--check` the code
 * of what is wrong.
 */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const maxAge = typedDuration('--max-age', options.maxAge, DURATIONS)
  const fresh = typedDuration('--fresh', options.fresh, DURATIONS)
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
