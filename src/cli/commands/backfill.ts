import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import type { Filters } from '../../sync/types.ts'
import { jobName } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type JobSelection, type SelectedJob, selectJobs } from '../selection.ts'
import { withSession } from '../session.ts'

interface Options extends JobSelection {
  filter: [string, string][]
  fromPage?: number
  restart?: boolean
  wait?: boolean
}

/** `backfill`: from the first page, or page N, whatever the checkpoint of a sync. Partial with filters or a start page. */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const { filter, fromPage: firstPage = 1, restart = false, wait: waitForOwner = false } = options
  const { signal } = runtime
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = backfillJobs(config, options)
  return withSession(config, runtime, globals, { byHand: true }, async ({ runJobs }) => {
    const kind = filter.length > 0 || firstPage > 1 ? 'partial' : 'full'
    const plan = { origin: 'backfill', kind, firstPage, resumeWithin: null, restart } as const
    const results = await runJobs(jobs, { plan, trigger: 'backfill', waitForOwner, signal })
    return exitCodeOfJobs(results, signal)
  })
}

/** The jobs with the typed filters on top of the configured ones. Throws UsageError if the two contradict each other. */
function backfillJobs(config: Config, options: Options): SelectedJob[] {
  if (options.org.length === 0)
    throw new UsageError('backfill needs --org ORG: the organization whose lists it walks')
  const typed = typedFilters(options.filter)
  return selectJobs(config, options).map(({ organization, job }) => {
    const { collection } = job
    const filters = mergeFilters(collection.filters, typed, jobName(job))
    return {
      organization,
      job: { ...job, collection: { ...collection, filters, scope: collection.filters } },
    }
  })
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

function mergeFilters(configured: Filters, typed: Filters, place: string): Filters {
  for (const [name, value] of Object.entries(typed)) {
    const other = Object.hasOwn(configured, name) ? configured[name] : undefined
    if (other !== undefined && JSON.stringify([other].flat()) !== JSON.stringify([value].flat())) {
      throw new UsageError(
        `--filter ${name}=${[value].flat().join(',')}: ${place} is configured with ${name}=${[other].flat().join(',')}; ` +
          'a backfill can narrow the configured list, not leave it',
      )
    }
  }
  return { ...configured, ...typed }
}
