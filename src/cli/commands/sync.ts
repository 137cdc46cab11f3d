import { UsageError } from '../../errors.ts'
import { readConfig } from '../config-file.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { type HowToRun, withSession } from '../session.ts'

interface Options extends JobSelection {
  refresh?: boolean
  acceptRemovals?: boolean
  acceptAddress?: boolean
  wait?: boolean
}

/** `sync`: the jobs once, now. Continues unfinished walks; with `--refresh` only reads the newest end of each list. */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const {
    refresh = false,
    acceptAddress = false,
    acceptRemovals = false,
    wait: waitForOwner = false,
  } = options
  if (refresh && acceptRemovals)
    throw new UsageError('--accept-removals: a refresh removes nothing; leave out --refresh to walk the list')
  const { signal } = runtime
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options)
  return withSession(config, runtime, globals, { byHand: true, acceptAddress }, async ({ runJobs }) => {
    const instead = refresh ? 'newest' : undefined
    const how: HowToRun = { trigger: 'manual', waitForOwner, acceptRemovals, instead, signal }
    return exitCodeOfJobs(await runJobs(jobs, how), signal)
  })
}
