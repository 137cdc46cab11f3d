import { type Globals, readConfig } from '../config-file.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import { jsonText, runsReport } from '../json/results.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { syncPlan, withSession } from '../with-session.ts'

interface SyncOptions extends JobSelection {
  acceptRemovals?: boolean
  acceptAddress?: boolean
  wait?: boolean
  json?: boolean
}

/** `sync`: the jobs once, now. Continues unfinished walks. */
export async function run(runtime: Runtime, globals: Globals, options: SyncOptions): Promise<number> {
  const { acceptAddress = false, acceptRemovals = false, wait: waitForOwner = false } = options
  const { signal } = runtime
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options)
  return withSession(config, runtime, globals, { byHand: true, acceptAddress }, async ({ runJobs }) => {
    const plan = syncPlan(config)
    const results = await runJobs(jobs, { plan, trigger: 'manual', waitForOwner, acceptRemovals, signal })
    const exitCode = exitCodeOfJobs(results, signal)
    if (options.json) runtime.stdout.write(jsonText(runsReport(results, exitCode)))
    return exitCode
  })
}
