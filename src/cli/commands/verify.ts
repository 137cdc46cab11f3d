import type { Config } from '../../config/config.ts'
import type { Differences } from '../../sync/differences.ts'
import { runConcurrently } from '../../sync/job.ts'
import { type VerifyResult, verifyJob } from '../../sync/verify.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { exitCodeOf, exitCodeOfStop, firstOf } from '../exit-code.ts'
import { jsonText, verifyReport } from '../json/results.ts'
import { isMade } from '../keep/writable-mirror.ts'
import { noMirror } from '../mirror-file.ts'
import { typedConfig } from '../names.ts'
import { differenceLines, isApart } from '../output/differences.ts'
import type { Runtime } from '../runtime.ts'
import { type JobSelection, type SelectedJob, selectJobs } from '../selection.ts'
import { type CommandSession, withSession } from '../with-session.ts'

interface VerifyCommandOptions extends JobSelection {
  wait?: boolean
  json?: boolean
}

/** `verify`: walks the lists and compares them with the mirror. Writes no rows. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  options: VerifyCommandOptions,
): Promise<number> {
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options)
  if (!(await isMade(config, runtime))) throw noMirror(config.database)
  return withSession(config, runtime, globals, { byHand: true }, async (session) => {
    const results = await compareAll(runtime, config, session, jobs, options.wait === true)
    const exitCode = exitCodeOfVerifying(results, runtime.signal)
    const lines = results.flatMap(differenceLines).map((line) => `${line}\n`)
    runtime.stdout.write(
      options.json ? jsonText(verifyReport(results, exitCode, typedConfig(globals))) : lines.join(''),
    )
    return exitCode
  })
}

function compareAll(
  { now, sleep, yieldToEventLoop, signal }: Runtime,
  { maxPasses }: Config,
  { store, source: sourceOf, reporter }: CommandSession,
  jobs: readonly SelectedJob[],
  waitForOwner: boolean,
): Promise<VerifyResult[]> {
  const tasks = jobs.map(({ organization, job }) => (stop: AbortSignal) => {
    const source = () => sourceOf(organization, job)
    const observer = reporter.observeVerifying(job)
    const options = { job, source, store, maxPasses, waitForOwner, now, sleep, yieldToEventLoop, observer }
    return verifyJob({ ...options, signal: stop })
  })
  return runConcurrently(tasks, signal)
}

function exitCodeOfVerifying(results: readonly VerifyResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return firstOf(
    results.map(({ differences, error }) => (error ? exitCodeOf(error) : exitCodeOfReading(differences))),
  )
}

/** 1 if the reading could not find out what the mirror has too much: then neither 0 nor 5 is proved. */
function exitCodeOfReading(differences: Differences | null): number {
  if (isApart(differences)) return 5
  return differences?.isExtraKnown === false || differences?.isCut ? 1 : 0
}
