import type { OpenBackfill, StatusRow } from '../store/sqlite/read/status.ts'
import { counted, grouped, inWords, printable } from '../text.ts'
import { backfillCommand, forgetCommand, nextStep } from './next-step.ts'
import { missedText, progressNotes } from './progress.ts'

/** A job in the output of `status --json`. Times are ISO 8601. Fields may be added, never changed. */
export interface JobStatus extends Omit<StatusRow, 'configured' | 'backfills'> {
  configured: boolean
  /** The open ones; `next` is the command that continues one. */
  backfills: (OpenBackfill & { next: string })[]
  /** Milliseconds since `as_of`. */
  age_ms: number | null
  /** True if a configured list was never read whole or is older than `--max-age`; null without that. */
  too_old: boolean | null
  /** The command that shows how to delete a list that is no longer configured; else null. */
  forget: string | null
  /** What to type or do next; null if there is nothing to do. */
  next: string | null
}

export interface Status {
  database: string
  now: string
  /** The end of the rate limit's pause; null if there is none. */
  waiting_until: string | null
  /** `--max-age` as typed. */
  max_age: string | null
  jobs: JobStatus[]
}

/** The row of a configured job that is not in the mirror yet. */
export function neverSynced(organization: { id: string; name: string }, collection: string): StatusRow {
  return {
    organization_id: organization.id,
    organization: organization.name,
    collection,
    configured: 1,
    rows: 0,
    as_of: null,
    last_complete_at: null,
    coverage: null,
    expected_missed: null,
    last_run_at: null,
    last_run_status: null,
    last_run_trigger: null,
    error_code: null,
    error_message: null,
    removals_held: 0,
    held_why: null,
    untrusted: null,
    total_is_wrong: false,
    rows_missed: 0,
    held_since: null,
    held_reason: null,
    walk_origin: null,
    walk_page: null,
    walk_pages: null,
    walk_rows_seen: null,
    walk_total: null,
    walk_started_at: null,
    walk_updated_at: null,
    running: false,
    waiting_for: null,
    waiting_until: null,
    backfills: [],
  }
}

/**
 * @param program How the program was called, `--config` included, so that its commands can be pasted.
 * @param maxAge `--max-age` in milliseconds, or null.
 */
export function jobStatus(
  row: StatusRow,
  now: number,
  program: string,
  maxAge: number | null = null,
): JobStatus {
  const age = row.as_of === null ? null : now - Date.parse(row.as_of)
  const pasteable = (text: string) => text.replaceAll('admin-mirror ', `${program} `)
  const backfills = row.backfills.map((walk) => ({ ...walk, next: pasteable(backfillCommand(row, walk)) }))
  const wait = waitOf(row, now)
  const tooOld = maxAge === null ? null : row.configured === 1 && (age === null || age > maxAge)
  const next = nextStep({ ...row, ...wait }, now, tooOld === true)
  return {
    ...row,
    ...wait,
    configured: row.configured === 1,
    backfills,
    age_ms: age,
    too_old: tooOld,
    forget: row.configured === 1 ? null : pasteable(forgetCommand(row)),
    next: next === null ? null : pasteable(next),
  }
}

/** The longest wait for a rate limit; a later time was written by a wrong clock. */
const LONGEST_WAIT_MS = 86_400_000

/** The wait of a job that runs, or whose last run failed, while it lasts. */
function waitOf({ running, waiting_for, waiting_until, last_run_status: last }: StatusRow, now: number) {
  const wait = Date.parse(waiting_until ?? '') - now
  const isMeant = running !== false || (last !== null && last !== 'succeeded')
  const isWaiting = isMeant && wait > 0 && wait <= LONGEST_WAIT_MS
  return isWaiting ? { waiting_for, waiting_until } : { waiting_for: null, waiting_until: null }
}

/**
 * One line a job: the list, its rows, as of when and how sure; below it what needs attention.
 * @param ask How to ask this file.
 */
export function statusText(status: Status, ask = 'admin-mirror query'): string {
  const now = Date.parse(status.now)
  const lines = [`mirror: ${status.database}`, summary(status), '']
  for (const job of status.jobs) lines.push(...jobLines(job, now, status.max_age))
  if (status.waiting_until !== null)
    lines.push('', `the rate limit asks for a pause until ${status.waiting_until}`)
  lines.push('', ...nextLines(status.jobs, ask))
  return lines.map((line) => `${line}\n`).join('')
}

/** The next steps, each once, and at most MOST_STEPS. */
function nextLines(jobs: readonly JobStatus[], ask: string): string[] {
  const all = [...new Set(jobs.flatMap(({ next }) => next ?? []))]
  const nothing = jobs.some((job) => job.too_old)
    ? 'wait for the readings that are under way'
    : `nothing to do; ask the mirror with ${ask} "SELECT * FROM sync_status"`
  const [first = nothing, ...others] = all.slice(0, MOST_STEPS)
  const more = all.length - MOST_STEPS
  return [
    `next: ${first}`,
    ...others.map((next) => `      ${next}`),
    ...(more > 0 ? [`      ... and ${grouped(more)} more`] : []),
  ]
}

const MOST_STEPS = 5

function summary({ jobs, max_age: maxAge }: Status): string {
  const count = (isMeant: (job: JobStatus) => boolean) => jobs.filter(isMeant).length
  const attention = count((job) => job.next !== null)
  if (attention > 0) return `${attention} of ${jobs.length} lists need attention`
  const old = count((job) => job.too_old === true)
  if (old > 0) return `${old} of ${jobs.length} lists are older than ${maxAge}`
  const unread = count((job) => job.configured && job.as_of === null)
  if (unread > 0) return `${unread} of ${jobs.length} lists are not read whole yet`
  const unclear = count((job) => job.last_run_status === 'running' && job.running === null)
  if (unclear > 0) return `${unclear} of ${jobs.length} lists are being read, or were interrupted`
  const uncertain = count((job) => job.untrusted !== null)
  if (uncertain > 0) return `${uncertain} of ${jobs.length} lists were read without certainty`
  return `all ${jobs.length} lists are well`
}

function jobLines(job: JobStatus, now: number, maxAge: string | null): string[] {
  const name = `${printable(job.organization, 40)} ${job.collection}`.padEnd(28)
  const lines = [`${name}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${freshness(job)}`]
  const note = (text: string) => lines.push(`    ${text}`)
  if (job.too_old === true) note(tooOldNote(job, maxAge))
  if (job.forget !== null) note(`no longer in the configuration; its rows stay, or go with: ${job.forget}`)
  if (job.held_since) note(`held since ${job.held_since}: ${printable(job.held_reason ?? '')}`)
  for (const text of progressNotes(job)) note(text)
  if (job.waiting_until !== null)
    note(
      `waits until ${job.waiting_until} (${inWords(Date.parse(job.waiting_until) - now)}): ${job.waiting_for}`,
    )
  // `heldNote` reports what is held back.
  if (job.error_code && job.error_code !== 'REMOVALS_HELD' && job.last_run_at) {
    note(
      `last run ${inWords(now - Date.parse(job.last_run_at))} ago: ${job.error_code}: ${printable(job.error_message ?? '', 500)}`,
    )
  }
  if (job.removals_held > 0) note(heldNote(job))
  if (job.rows_missed > 0) note(missedNote(job))
  if (job.untrusted !== null)
    note(printable(`nothing is removed on the word of its last reading: ${job.untrusted}`, 500))
  return lines
}

function tooOldNote({ as_of: asOf }: JobStatus, maxAge: string | null): string {
  return asOf === null
    ? `too old: no whole reading yet, and --max-age is ${maxAge}`
    : `too old: --max-age is ${maxAge}`
}

/** Between two readings such rows count like any others. */
function missedNote({ rows_missed: missed }: JobStatus): string {
  return `${counted(missed, 'row')} did not come in the last reading; if the next one does not see them either they go, or are held back`
}

function heldNote({ removals_held: held, held_why: why, rows }: JobStatus): string {
  const reason = why === 'empty' ? 'the list came without items' : 'more than the brake lets go at once'
  return `${grouped(held)} of these ${counted(rows, 'row')} left the list and are held back: ${reason}`
}

function freshness({ as_of: asOf, age_ms: age, last_run_at: lastRun, ...job }: JobStatus): string {
  if (asOf === null || age === null) return lastRun === null ? 'never synced' : 'never read whole'
  const coverage = job.coverage ? `, ${job.coverage}${missedText(job.expected_missed)}` : ''
  return `as of ${asOf} (${inWords(age)} ago)${coverage}`
}
