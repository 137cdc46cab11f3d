import { UsageError } from '../../errors.ts'
import type { Filters } from '../../sync/types.ts'
import { jobName } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import type { Invocation } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { inSession } from '../session.ts'

interface Options extends JobSelection {
  filter: [string, string][]
  fromPage?: number
  restart?: boolean
  wait?: boolean
}

/** `backfill`: from the first page, or page N, whatever the checkpoint of a sync. Partial with filters or a start page. */
export async function run(runtime: Invocation, options: Options): Promise<number> {
  const { filter, fromPage: firstPage = 1, restart = false, wait: waitForOwner } = options
  const { signal } = runtime
  if (filter.some(([name]) => name === 'page'))
    throw new UsageError('--filter page=...: write --from-page N instead')
  const config = readConfig(runtime, 'resolve')
  const jobs = selectJobs(config, options).map((job) => {
    const { filters: scope } = job.collection
    const filters = filtersOf(scope, filter, jobName(job))
    return { ...job, collection: { ...job.collection, filters, scope } }
  })
  const kind = filter.length > 0 || firstPage > 1 ? 'partial' : 'full'
  const plan = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart } as const
  const how = { plan, trigger: 'backfill', waitForOwner, signal } as const
  return inSession(runtime, { config }, async ({ runJobs }) =>
    exitCodeOfJobs(await runJobs(jobs, how), signal),
  )
}

/** The typed filters on top of the configured ones; one that is typed several times is a list. Throws UsageError if the two contradict each other. */
function filtersOf(configured: Filters, typed: readonly [string, string][], list: string): Filters {
  const merged = new Map(Object.entries(configured))
  for (const [name, pairs] of Map.groupBy(typed, ([one]) => one)) {
    const values = pairs.map(([, value]) => value)
    const other = merged.get(name)
    if (other !== undefined && JSON.stringify([other].flat()) !== JSON.stringify(values))
      throw new UsageError(
        `--filter ${name}=${values.join(',')}: ${list} is configured with ${name}=${String(other)}; a backfill can narrow the configured list, not leave it`,
      )
    merged.set(name, values.length === 1 ? (values[0] ?? '') : values)
  }
  // Unlike an assignment, this makes own fields of `__proto__` and `constructor`, too.
  return Object.fromEntries(merged)
}
