import { ERRORS, type ErrorCode } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'
import { counted, grouped, inWords, printable } from '../text.ts'

/** How a job ended, for pings. `stopped`: by a signal; `busy`: a schedule or a refresh met a job that another process works on. */
export function endOf({ trigger, error, heldBack }: JobResult): 'succeeded' | 'failed' | 'stopped' | 'busy' {
  const code = (error ?? heldBack)?.code
  if (code === undefined) return 'succeeded'
  if (code === 'INTERRUPTED') return 'stopped'
  return code === 'BUSY' && trigger !== 'manual' && trigger !== 'backfill' ? 'busy' : 'failed'
}

/** Why a job failed. */
export function reasonOfFailure({ error, heldBack }: JobResult): string {
  const failure = error ?? heldBack
  return reasonOf(failure?.code ?? '', failure?.message ?? null)
}

/** What a server said may hold an item's data; the message of DATABASE is our own, and the code alone would not explain a full disk. */
export function reasonOf(code: string, message: string | null): string {
  if (code === 'DATABASE' && message !== null) return `${code}: ${printable(message, 300)}`
  // A later version may have left a code that is unknown here, and who may write the mirror any text.
  return Object.hasOwn(ERRORS, code) ? `${code} (${ERRORS[code as ErrorCode].meaning})` : printable(code, 60)
}

/** Names a list in pings. */
export function listName(organization: string, collection: string): string {
  return printable(`${organization} ${collection}`, 80)
}

export function listOf({ job }: JobResult): string {
  return listName(job.organization.name, job.collection.name)
}

const MOST_TOLD = 20

export function startText(jobs: number): string {
  return `admin-mirror: ${counted(jobs, 'list')} to read\n`
}

/** The lists that are not well, with the reason of each. */
export type Failing = ReadonlyMap<string, string>

/** Numbers, and names of organizations and collections; nothing that an API sent. `ms`: how long it took; null: unknown. */
export function outcomeText(results: readonly JobResult[], failing: Failing, ms: number | null): string {
  const sum = (numberOf: (result: JobResult) => number | undefined) =>
    grouped(results.reduce((total, result) => total + (numberOf(result) ?? 0), 0))
  // Distinct items: one that moved to the next page meanwhile is in two answers. For refreshes these are not known.
  const seen = sum(({ walk, run, items }) => (walk && run ? items : 0))
  const numbers = [
    ...(seen === '0' ? [] : [`${seen} rows seen`]),
    `${sum(({ run }) => run?.rowsAdded)} new`,
    `${sum(({ run }) => run?.rowsChanged)} changed`,
    `${sum(({ run }) => run?.rowsRemoved)} removed`,
  ]
  const busy = results.filter((result) => endOf(result) === 'busy').length
  return textOf([
    `${counted(results.length, 'list')}${ms === null ? '' : ` in ${inWords(ms)}`}; ${numbers.join(', ')}`,
    ...(busy > 0 ? [`${counted(busy, 'list')} left to another process`] : []),
    ...failedLines(failing),
  ])
}

/** The ping of a service that begins while lists are failing. */
export function standingText(failing: Failing): string {
  return textOf(['started', ...failedLines(failing)])
}

function textOf(lines: readonly string[]): string {
  return `admin-mirror: ${lines.join('\n')}\n`
}

function failedLines(failing: Failing): string[] {
  const lines = Array.from(failing, ([list, reason]) => `${list}: ${reason}`)
  if (lines.length === 0) return []
  const more = lines.length - MOST_TOLD
  return [
    `${counted(lines.length, 'list')} failed:`,
    ...lines.slice(0, MOST_TOLD),
    ...(more > 0 ? [`and ${grouped(more)} more`] : []),
  ]
}
