import { exitCodeOfJobs } from '../exit-code.ts'
import type { Globals, JobSelection } from '../program.ts'
import type { Runtime } from '../runtime.ts'
import { selectJobs } from '../selection.ts'
import { whileWorking } from '../working.ts'

/** `sync`: the jobs once, now, going on with unfinished walks. */
export function sync(
  runtime: Runtime,
  globals: Globals,
  selection: JobSelection & { acceptRemovals?: boolean; wait?: boolean },
): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: true },
    (config) => selectJobs(config, selection),
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
        waitForOwner: selection.wait === true,
        signal: runtime.signal,
      })
      return exitCodeOfJobs(results, runtime.signal)
    },
  )
}
