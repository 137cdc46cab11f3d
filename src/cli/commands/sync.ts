import type { Globals } from '../context.ts'
import { exitCodeOfJobs } from '../exit-code.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { whileWorking } from '../working.ts'

export interface SyncOptions extends JobSelection {
  acceptRemovals?: boolean
  wait?: boolean
}

/** `sync`: the jobs once, now, going on with unfinished walks. */
export function sync(runtime: Runtime, globals: Globals, options: SyncOptions): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: true },
    (config) => selectJobs(config, options),
    async ({ config, run }, jobs) => {
      const plan = {
        origin: 'sync',
        kind: 'full',
        firstPage: 1,
        resumeWithin: config.resumeWithin,
        restart: false,
      } as const
      const results = await run(jobs, {
        plan,
        trigger: 'manual',
        waitForOwner: options.wait === true,
        signal: runtime.signal,
      })
      return exitCodeOfJobs(results, runtime.signal)
    },
  )
}
