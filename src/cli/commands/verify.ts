import type { Differences } from '../../sync/differences.ts'
import { sideBySide } from '../../sync/jobs.ts'
import { type VerifyResult, verifyJob } from '../../sync/verify.ts'
import type { Globals } from '../context.ts'
import { differenceLines, isApart } from '../differences.ts'
import { exitCodeOf, exitCodeOfStop, firstOf } from '../exit-code.ts'
import { assertMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, type SelectedJob, selectJobs } from '../selection.ts'
import { type Working, whileWorking } from '../working.ts'

export interface VerifyCommandOptions extends JobSelection {
  wait?: boolean
}

/** `verify`: walks the lists and compares them with the mirror, into which it writes no rows. */
export function verify(runtime: Runtime, globals: Globals, options: VerifyCommandOptions): Promise<number> {
  return whileWorking(
    runtime,
    globals,
    { tryHeldTokens: true, exitOfStop: exitCodeOfStop },
    (config) => {
      const jobs = selectJobs(config, options)
      assertMirror(config.database)
      return jobs
    },
    async (working, jobs) => {
      const results = await compareAll(runtime, working, jobs, options.wait === true)
      for (const result of results)
        for (const line of differenceLines(result)) runtime.stdout.write(`${line}\n`)
      return exitCodeOfVerifying(results, runtime.signal)
    },
  )
}

function compareAll(
  { now, sleep, turn, signal }: Runtime,
  { config, session, reporter }: Working,
  jobs: readonly SelectedJob[],
  waitForOwner: boolean,
): Promise<VerifyResult[]> {
  const { store } = session
  const { maxPasses } = config
  const tasks = jobs.map(({ organization, job }) => (stop: AbortSignal) => {
    const source = () => session.source(organization, job)
    const observer = reporter.observeVerifying(job)
    const options = { job, source, store, maxPasses, waitForOwner, now, sleep, turn, observer }
    return verifyJob({ ...options, signal: stop })
  })
  return sideBySide(tasks, signal)
}

function exitCodeOfVerifying(results: readonly VerifyResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return firstOf(
    results.map(({ differences, error }) => (error ? exitCodeOf(error) : exitCodeOfReading(differences))),
  )
}

/** A reading that cannot tell what the mirror has too much proves neither that they are apart nor that they are equal. */
function exitCodeOfReading(differences: Differences | null): number {
  if (isApart(differences)) return 5
  return differences?.isExtraTold === false ? 1 : 0
}
