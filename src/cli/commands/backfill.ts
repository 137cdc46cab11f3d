import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import type { Filters } from '../../sync/types.ts'
import type { Globals } from '../context.ts'
import { exitCodeOfJobs, exitCodeOfStop } from '../exit-code.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, type SelectedJob, selectJobs } from '../selection.ts'
import { whileWorking } from '../working.ts'

export interface BackfillOptions extends JobSelection {
  filter: [string, string][]
  fromPage?: number
  restart?: boolean
  wait?: boolean
}

/** `backfill`: from the first page, or page N, whatever a sync's checkpoint says; with filters or a start page only a part. */
export function backfill(runtime: Runtime, globals: Globals, options: BackfillOptions): Promise<number> {
  const firstPage = options.fromPage ?? 1
  const kind = options.filter.length > 0 || firstPage > 1 ? 'partial' : 'full'
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: true, exitOfStop: exitCodeOfStop },
    (config) => backfillJobs(config, options),
    async ({ run }, jobs) => {
      const plan = {
        origin: 'backfill',
        kind,
        firstPage,
        resumeWithin: null,
        restart: options.restart === true,
      } as const
      const results = await run(jobs, {
        plan,
        trigger: 'backfill',
        waitForOwner: options.wait === true,
        signal: runtime.signal,
      })
      return exitCodeOfJobs(results, runtime.signal)
    },
  )
}

/** The jobs with the typed filters on top of the configured ones. Throws UsageError where the two contradict each other. */
function backfillJobs(config: Config, options: BackfillOptions): SelectedJob[] {
  if (options.org.length === 0)
    throw new UsageError('backfill needs --org ORG: whose lists are to be walked?')
  const typed = typedFilters(options.filter)
  return selectJobs(config, options).map(({ organization, job }) => {
    const { collection } = job
    const filters = mergeFilters(collection.filters, typed, `${organization.name} ${collection.name}`)
    return {
      organization,
      job: { ...job, collection: { ...collection, filters, scope: collection.filters } },
    }
  })
}

/** A name that is typed twice is a list. */
function typedFilters(typed: readonly [string, string][]): Filters {
  const filters = new Map<string, string | string[]>()
  for (const [name, value] of typed) {
    if (name === 'page') throw new UsageError('--filter page=...: write --from-page N instead')
    const before = filters.get(name)
    filters.set(name, before === undefined ? value : [before, value].flat())
  }
  // Makes fields of its own of `__proto__` and `constructor` too, as an assignment would not.
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
