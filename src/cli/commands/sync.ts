import type { Globals } from '../context.ts'
import { exitCodeOfJobs, exitCodeOfStop } from '../exit-code.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { syncPlan, whileWorking } from '../working.ts'

export interface SyncOptions extends JobSelection {
  acceptRemovals?: boolean
  acceptAddress?: boolean
  wait?: boolean
}

/** `sync`: the jobs once, now, going on with unfinished walks. */
export function sync(runtime: Runtime, globals: Globals, options: SyncOptions): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    {
      tryHeldTokens: true,
      acceptAddress: options.acceptAddress === true,
      exitOfStop: exitCodeOfStop,
    },
    (config) => selectJobs(config, options),
    async ({ config, run }, jobs) => {
      const results = await run(jobs, {
        plan: syncPlan(config),
        trigger: 'manual',
        waitForOwner: options.wait === true,
        acceptRemovals: options.acceptRemovals === true,
        signal: runtime.signal,
      })
      return exitCodeOfJobs(results, runtime.signal)
    },
  )
}
