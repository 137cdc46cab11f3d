import { UsageError } from '../../errors.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import type { Invocation } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { inSession } from '../session.ts'

interface Options extends JobSelection {
  refresh?: boolean
  acceptRemovals?: boolean
  acceptAddress?: boolean
  wait?: boolean
}

/** `sync`: the jobs once, now. Continues unfinished walks; with `--refresh` only reads the newest end of each list. */
export async function run(runtime: Invocation, options: Options): Promise<number> {
  const { refresh, acceptAddress, acceptRemovals, wait: waitForOwner } = options
  const { signal } = runtime
  if (refresh && acceptRemovals)
    throw new UsageError('--accept-removals: a refresh removes nothing; leave out --refresh to walk the list')
  const config = readConfig(runtime, 'resolve')
  const jobs = selectJobs(config, options)
  const instead = refresh ? 'newest' : undefined
  const how = { trigger: 'manual', waitForOwner, acceptRemovals, instead, signal } as const
  return inSession(runtime, { config, acceptAddress }, async ({ runJobs }) =>
    exitCodeOfJobs(await runJobs(jobs, how), signal),
  )
}
