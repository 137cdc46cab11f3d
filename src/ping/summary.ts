import { ERRORS, type ErrorCode } from '../errors.ts'
import type { JobResult } from '../sync/job.ts'
import { counted, grouped, inWords, printable } from '../text.ts'

/** How a job ended, for pings. */
export interface Outcome {
  /** Organization and collection. */
  job: string
  /** `stopped`: by a signal; `busy`: a schedule or a refresh met a job that another process works on. */
  state: 'succeeded' | 'failed' | 'stopped' | 'busy'
  /** Of a failure. */
  reason: string
  /** Whether `sync_runs` has a line of it, so that the list is failing for everything that reads the mirror. */
  hasLine: boolean
  /** Names the refused token, which fails runs and refreshes alike; null for any other end. */
  heldToken: string | null
  rows: { seen: number; added: number; changed: number; removed: number }
}

/** `token`: returns a name of the organization's token. */
export function outcomeOf(
  { job, trigger, run, walk, items, error, heldBack }: JobResult,
  token: () => string,
): Outcome {
  const code = error?.code ?? heldBack?.code
  const rows = {
    // Distinct items: one that moved to the next page meanwhile is in two answers. For refreshes these are not known.
    seen: walk && run ? items : 0,
    added: run?.rowsAdded ?? 0,
    changed: run?.rowsChanged ?? 0,
    removed: run?.rowsRemoved ?? 0,
  }
  const name = listName(job.organization.name, job.collection.name)
  const known = { job: name, reason: '', hasLine: run !== null, heldToken: null, rows }
  if (code === undefined) return { ...known, state: 'succeeded' }
  if (code === 'INTERRUPTED') return { ...known, state: 'stopped' }
  if (code === 'BUSY' && trigger !== 'manual' && trigger !== 'backfill') return { ...known, state: 'busy' }
  // The message of DATABASE is our own, and the code alone would not explain a full disk.
  const reason = code === 'DATABASE' && error ? `${code}: ${printable(error.message, 300)}` : reasonOf(code)
  return { ...known, state: 'failed', reason, heldToken: heldBy(code, token) }
}

/** What an earlier process left behind. */
export function standingOutcome(
  organization: string,
  collection: string,
  code: string,
  token: () => string,
): Outcome {
  const rows = { seen: 0, added: 0, changed: 0, removed: 0 }
  return {
    job: listName(organization, collection),
    state: 'failed',
    reason: reasonOf(code),
    hasLine: true,
    heldToken: heldBy(code, token),
    rows,
  }
}

function heldBy(code: string, token: () => string): string | null {
  return code === 'UNAUTHORIZED' ? token() : null
}

function listName(organization: string, collection: string): string {
  return printable(`${organization} ${collection}`, 80)
}

/** Not the message: what a server says may hold an item's data. A later version may have left a code that is unknown here. */
function reasonOf(code: string): string {
  return Object.hasOwn(ERRORS, code) ? `${code} (${ERRORS[code as ErrorCode].meaning})` : code
}

const MOST_TOLD = 20

export function startText(jobs: number): string {
  return `admin-mirror: ${counted(jobs, 'list')} to read\n`
}

/** Numbers, and names of organizations and collections; nothing that an API sent. `ms`: how long it took; null: unknown. */
export function outcomeText(
  outcomes: readonly Outcome[],
  failed: readonly Outcome[],
  ms: number | null,
): string {
  const sum = (name: keyof Outcome['rows']) =>
    grouped(outcomes.reduce((total, { rows }) => total + rows[name], 0))
  const seen = sum('seen')
  const busy = outcomes.filter(({ state }) => state === 'busy').length
  const lines = [
    `admin-mirror: ${counted(outcomes.length, 'list')}${ms === null ? '' : ` in ${inWords(ms)}`}; ${seen === '0' ? '' : `${seen} rows seen, `}${sum('added')} new, ${sum('changed')} changed, ${sum('removed')} removed`,
    ...(busy > 0 ? [`${counted(busy, 'list')} left to another process`] : []),
    ...failedLines(failed),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/** The ping of a service that begins while lists are failing. */
export function standingText(failed: readonly Outcome[]): string {
  return ['admin-mirror: started', ...failedLines(failed)].map((line) => `${line}\n`).join('')
}

function failedLines(failed: readonly Outcome[]): string[] {
  return [
    ...(failed.length > 0 ? [`${counted(failed.length, 'list')} failed:`] : []),
    ...failed.slice(0, MOST_TOLD).map(({ job, reason }) => `${job}: ${reason}`),
    ...(failed.length > MOST_TOLD ? [`and ${grouped(failed.length - MOST_TOLD)} more`] : []),
  ]
}
