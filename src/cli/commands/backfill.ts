import { UsageError } from '../../errors.ts'
import type { Filters } from '../../sync/types.ts'
import { jobName } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import { openLog } from '../output/log.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { openCommand } from '../session.ts'

interface Options extends JobSelection {
  filter: [string, string][]
  fromPage?: number
  restart?: boolean
  wait?: boolean
}

/** `backfill`: from the first page, or page N, whatever the checkpoint of a sync. Partial with filters or a start page. */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const { filter, fromPage: firstPage = 1, restart = false, wait: waitForOwner } = options
  const { signal } = runtime
  const typed = typedFilters(filter)
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options).map(({ organization, job }) => {
    const { filters: scope } = job.collection
    const filters = mergeFilters(scope, typed, jobName(job))
    return { organization, job: { ...job, collection: { ...job.collection, filters, scope } } }
  })
  const log = await openLog(globals, runtime)
  const session = await openCommand({ config, runtime, ...log })
  try {
    const kind = filter.length > 0 || firstPage > 1 ? 'partial' : 'full'
    const plan = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart } as const
    const results = await session.runJobs(jobs, { plan, trigger: 'backfill', waitForOwner, signal })
    return exitCodeOfJobs(results, signal)
  } finally {
    await session.close()
  }
}

/** Makes a list of the values of a name that was typed several times. */
function typedFilters(typed: readonly [string, string][]): Filters {
  const filters = new Map<string, string | string[]>()
  for (const [name, value] of typed) {
    if (name === 'page') throw new UsageError('--filter page=...: write --from-page N instead')
    const before = filters.get(name)
    filters.set(name, before === undefined ? value : [before, value].flat())
  }
  // Unlike an assignment, this makes own fields of `__proto__` and `constructor`, too.
  return Object.fromEntries(filters)
}

/** The typed filters on top of the configured ones. Throws UsageError if the two contradict each other. */
function mergeFilters(configured: Filters, typed: Filters, list: string): Filters {
  for (const [name, value] of Object.entries(typed)) {
    const other = Object.hasOwn(configured, name) ? configured[name] : undefined
    if (other !== undefined && JSON.stringify([other].flat()) !== JSON.stringify([value].flat()))
      throw new UsageError(
        `--filter ${name}=${String(value)}: ${list} is configured with ${name}=${String(other)}; a backfill can narrow the configured list, not leave it`,
      )
  }
  return { ...configured, ...typed }
}
