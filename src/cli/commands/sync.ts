import { UsageError } from '../../errors.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import { openLog } from '../output/log.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { openCommand } from '../session.ts'

interface Options extends JobSelection {
  refresh?: boolean
  acceptRemovals?: boolean
  acceptAddress?: boolean
  wait?: boolean
}

/** `sync`: the jobs once, now. Continues unfinished walks; with `--refresh` only reads the newest end of each list. */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const { refresh, acceptAddress, acceptRemovals, wait: waitForOwner } = options
  const { signal } = runtime
  if (refresh && acceptRemovals)
    throw new UsageError('--accept-removals: a refresh removes nothing; leave out --refresh to walk the list')
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options)
  const log = await openLog(globals, runtime)
  const session = await openCommand({ config, runtime, acceptAddress, ...log })
  try {
    const instead = refresh ? 'newest' : undefined
    const how = { trigger: 'manual', waitForOwner, acceptRemovals, instead, signal } as const
    return exitCodeOfJobs(await session.runJobs(jobs, how), signal)
  } finally {
    await session.close()
  }
}
