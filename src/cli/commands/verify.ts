import { ERRORS, worstExitCode } from '../../errors.ts'
import { type Difference, type Differences, KINDS, verifyJob, type VerifyResult } from '../../sync/verify.ts'
import { counted, grouped, printable, shellWord } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { assertMirror } from '../place.ts'
import type { Invocation } from '../runtime.ts'
import { type JobSelection, selectJobs } from '../selection.ts'
import { inSession } from '../session.ts'

/** `verify`: walks the lists and compares them with the mirror. Writes no rows. */
export async function run(runtime: Invocation, options: JobSelection & { wait?: boolean }): Promise<number> {
  const { stdout, signal } = runtime
  const waitForOwner = options.wait === true
  const config = readConfig(runtime, 'resolve')
  const jobs = selectJobs(config, options)
  await assertMirror(config, runtime)
  return inSession(runtime, { config }, async ({ eachJob }) => {
    const results = await eachJob(jobs, signal, (tools) => verifyJob({ ...tools, waitForOwner }))
    // What lists cannot be read by for one cause is told once, as in the log.
    for (const [first, ...others] of Map.groupBy(results, (one) => one.error?.shared || one).values())
      for (const line of first ? differenceLines(first, others.length) : []) stdout.write(`${line}\n`)
    return signal.aborted ? exitCodeOfStop(signal) : worstExitCode(results.map(exitCodeOf))
  })
}

/** 1 if the reading could not find out which rows the mirror has too many: then neither 0 nor 5 is proved. */
function exitCodeOf({ differences, error }: VerifyResult): number {
  if (error) return ERRORS[error.code].exitCode
  if (!differences) return 0
  if (Object.values(differences.counts).some((count) => count > 0)) return 5
  return differences.isExtraKnown ? 0 : 1
}

/**
 * What `verify` prints of a job: one line per difference (kind, job, key, paths), then a summary. Values are left out, since they
 * may be personal data.
 * @param alike How many other lists could not be read for the same cause.
 */
export function differenceLines({ job, differences, error }: VerifyResult, alike = 0): string[] {
  const name = `${printable(job.organization.name, 40)} ${job.collection.name}`
  const more = alike === 0 ? '' : ` and ${counted(alike, 'more list')}`
  if (!differences)
    return [
      `${name}${more}: not verified: ${error ? `${error.code}: ${printable(error.message, 500)}` : 'stopped'}`,
    ]
  return [
    ...differences.found.map((one) => `${one.kind} ${name} ${differenceText(one)}`),
    `${name}: ${summaryText(differences)}`,
  ]
}

function differenceText({ key, page, paths, reject }: Difference): string {
  if (key === null) return `(on page ${page}, without a usable key: ${printable(reject ?? '')})`
  return [key, ...paths].map(shellWord).join(' ')
}

function summaryText({ items, counts, moved, coverage, isExtraKnown }: Differences): string {
  const apart = KINDS.filter((kind) => counts[kind] > 0).map((kind) => `${grouped(counts[kind])} ${kind}`)
  const hasMoved = moved > 0 || coverage === 'repaired' || coverage === 'drifted'
  const hints = [
    apart.length > 0 && hasMoved && 'the list moved meanwhile: what changed since then may be among them',
    !isExtraKnown && 'this reading cannot say whether the mirror has more than the list',
  ].filter((hint) => hint !== false)
  const read = `${counted(items, 'item')}${coverage ? `, ${coverage}` : ''}`
  return [`${apart.join(', ') || 'no difference'} (${read})`, ...hints].join('; ')
}
