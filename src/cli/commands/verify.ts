import { ERRORS, worstExitCode } from '../../errors.ts'
import type { Difference, Differences } from '../../sync/differences.ts'
import { type VerifyResult, verifyJob } from '../../sync/verify.ts'
import { counted, grouped, printable } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { isMade, noMirror } from '../mirror.ts'
import { openLog } from '../output/log.ts'
import { runConcurrently } from '../run-jobs.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { openCommand } from '../session.ts'

interface Options extends JobSelection {
  wait?: boolean
}

/** `verify`: walks the lists and compares them with the mirror. Writes no rows. */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const { now, sleep, yieldToEventLoop, stdout, signal } = runtime
  const config = readConfig(runtime, globals, 'resolve')
  const jobs = selectJobs(config, options)
  if (!(await isMade(config, runtime))) throw noMirror(config.database)
  const log = await openLog(globals, runtime)
  const session = await openCommand({ config, runtime, ...log })
  try {
    const tasks = jobs.map(
      ({ organization, job }) =>
        (stop: AbortSignal) =>
          verifyJob({
            job,
            source: () => session.source(organization, job),
            store: session.store,
            maxPasses: config.maxPasses,
            waitForOwner: options.wait === true,
            now,
            sleep,
            yieldToEventLoop,
            observe: session.reporter.observe(job),
            signal: stop,
          }),
    )
    const results = await runConcurrently(tasks, signal)
    for (const line of results.flatMap(differenceLines)) stdout.write(`${line}\n`)
    return exitCodeOfVerifying(results, signal)
  } finally {
    await session.close()
  }
}

function exitCodeOfVerifying(results: readonly VerifyResult[], signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  return worstExitCode(
    results.map(({ differences, error }) =>
      error ? ERRORS[error.code].exitCode : exitCodeOfReading(differences),
    ),
  )
}

/** 1 if the reading could not find out which rows the mirror has too many: then neither 0 nor 5 is proved. */
function exitCodeOfReading(differences: Differences | null): number {
  if (isApart(differences)) return 5
  return differences?.isExtraKnown === false || differences?.isCut ? 1 : 0
}

/**
 * What `verify` prints of a job: one line per difference (kind, job, key, paths), then a summary. Values are left out, since they
 * may be personal data.
 */
export function differenceLines({ job, differences, error }: VerifyResult): string[] {
  const name = `${printable(job.organization.name, 40)} ${job.collection.name}`
  if (!differences)
    return [`${name}: not verified: ${error ? `${error.code}: ${printable(error.message, 500)}` : 'stopped'}`]
  const lines = differences.listed.map(
    (difference) => `${difference.kind} ${name} ${differenceText(difference)}`,
  )
  return [...lines, ...furtherLines(name, differences), `${name}: ${summaryText(differences)}`]
}

/** Whether the mirror and the API certainly differ. */
function isApart(differences: Differences | null): boolean {
  return differences !== null && Object.values(differences.counts).some((count) => count > 0)
}

const KINDS = ['missing', 'extra', 'different'] as const

function differenceText({ key, page, paths, hasMorePaths, reject }: Difference): string {
  if (key === null) return `(on page ${page}, without a usable key: ${printable(reject ?? '')})`
  const where = paths.map((path) => word(path, 200))
  return [word(key, 1000), ...where, ...(hasMorePaths ? ['...'] : [])].join(' ')
}

/** One word: quoted as JSON if the text has spaces or quotes. */
function word(text: string, most: number): string {
  const isPlain = /^[^\s"]+$/u.test(text)
  return printable(isPlain ? text : JSON.stringify(text), most)
}

function furtherLines(name: string, { listed, counts }: Differences): string[] {
  return KINDS.flatMap((kind) => {
    const shown = listed.filter((difference) => difference.kind === kind).length
    const further = counts[kind] - shown
    return shown > 0 && further > 0 ? [`${kind} ${name} ... and ${grouped(further)} more`] : []
  })
}

function summaryText(differences: Differences): string {
  const { items, counts, isCut, moved, coverage, isExtraKnown, isNeverSynced } = differences
  if (isNeverSynced) return neverSyncedText(items)
  const apart = KINDS.filter((kind) => counts[kind] > 0).map((kind) => `${grouped(counts[kind])} ${kind}`)
  const reading = `${counted(items, 'item')}${coverage ? `, ${coverage}` : ''}`
  return [
    `${apart.length > 0 ? `${isCut ? 'at least ' : ''}${apart.join(', ')}` : 'no difference'} (${reading})`,
    ...(isCut ? ['more items seemed to differ than can be checked again'] : []),
    ...(moved > 0 ? [`${grouped(moved)} moved meanwhile, which is no difference`] : []),
    ...(apart.length > 0 && hasMoved(differences)
      ? [
          'the list moved meanwhile, so items that were added, left or changed since the verify began may be among them',
        ]
      : []),
    ...(isExtraKnown ? [] : ['this reading cannot say whether the mirror has more than the list']),
  ].join('; ')
}

function hasMoved({ coverage, moved }: Differences): boolean {
  return moved > 0 || coverage === 'repaired' || coverage === 'drifted'
}

function neverSyncedText(items: number): string {
  return items === 0
    ? 'never synced; the list is empty, too'
    : `never synced: ${items === 1 ? 'the 1 item is' : `all ${grouped(items)} items are`} missing`
}
