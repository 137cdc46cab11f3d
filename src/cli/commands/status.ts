import { parseDuration } from '../../config/schema.ts'
import { UsageError, worstExitCode } from '../../errors.ts'
import { statusText } from '../../report/status-text.ts'
import type { MostAge } from '../../report/status.ts'
import { printableJson, shellWord } from '../../text.ts'
import { type DatabaseOption, readPlace } from '../place.ts'
import { readStatus } from '../read-status.ts'
import type { Invocation } from '../runtime.ts'

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
export async function run(runtime: Invocation, options: Options): Promise<number> {
  const { json, check, database } = options
  const maxAge = durationOf('--max-age', options.maxAge)
  const fresh = durationOf('--fresh', options.fresh)
  const place = await readPlace(runtime, options)
  const status = await readStatus(runtime, { ...place, maxAge, fresh })
  const query = ['admin-mirror query', ...(database === undefined ? [] : ['--database', shellWord(database)])]
  runtime.stdout.write(
    json ? `${printableJson(JSON.stringify(status, null, 2))}\n` : statusText(status, query.join(' ')),
  )
  const isOld = status.jobs.some((job) => job.too_old || job.too_stale)
  return worstExitCode([isOld ? 1 : 0, check ? status.check_exit_code : 0])
}

function durationOf(option: string, typed: string | undefined): MostAge | null {
  if (typed === undefined) return null
  const ms = parseDuration(typed)
  if (ms === null) throw new UsageError(`${option} ${typed}: write a duration like 30m, 24h or 2d`)
  return { typed, ms }
}
