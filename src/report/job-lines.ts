import { counted, grouped, inWords, printable } from '../text.ts'
import type { JobStatus } from './job-status.ts'
import { missedText, progressNotes } from './progress.ts'
import type { DaemonStatus, Status } from './status.ts'
import { needsSomebody } from './verdict.ts'

/** What is said of a list below its line. `usual`: of what happens to lists that are well. */
interface Note {
  kind: 'trouble' | 'progress' | 'usual'
  text: string
}

/** A list: its rows, as of when and how sure; below it what is to be said of it. */
export function jobLines(job: JobStatus, status: Status): string[] {
  const now = Date.parse(status.now)
  const name = `${printable(job.organization, 40)} ${job.collection}`.padEnd(28)
  return [
    `${name}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${freshness(job)}${nextRun(job, now, status.daemon)}`,
    ...notesOf(job, now, status).map(({ text }) => `    ${text}`),
  ]
}

/** Whether somebody has to look at a list: not if it is being read, or was read whole, and no more is to be said of it. */
export function conditionOf(job: JobStatus, status: Status): 'troubled' | 'running' | 'well' {
  const isRunning = job.running === true
  const isSure = isRunning || (job.as_of !== null && job.coverage !== 'drifted')
  const isQuiet = notesOf(job, Date.parse(status.now), status).every(
    ({ kind }) => kind === 'usual' || (isRunning && kind === 'progress'),
  )
  if (job.next !== null || !isSure || !isQuiet) return 'troubled'
  return isRunning ? 'running' : 'well'
}

/** Each list that needs somebody: what is wrong with it, and what to type. At most so many lines. */
export function troubleLines(status: Status, most: number): string[] {
  const now = Date.parse(status.now)
  const lines = status.jobs.filter(needsSomebody).map((job) => {
    const why = notesOf(job, now, status).flatMap(({ kind, text }) => (kind === 'trouble' ? [text] : []))
    const name = `${printable(job.organization, 40)} ${job.collection}`
    // A list that was never tried has no note: its line says so.
    if (why.length === 0) why.push('never read')
    return `${name}: ${[...why, ...(job.next === null ? [] : [`next: ${job.next}`])].join('; ')}`
  })
  const more = lines.length - most
  return more > 0 ? [...lines.slice(0, most), `and ${counted(more, 'more list')}`] : lines
}

function notesOf(job: JobStatus, now: number, { max_age: maxAge, fresh }: Status): Note[] {
  const notes: Note[] = []
  const note = (text: string, kind: Note['kind'] = 'trouble') => notes.push({ kind, text })
  if (job.too_old === true) note(tooOldNote(job, maxAge))
  if (job.too_stale === true) note(tooStaleNote(job, fresh))
  if (job.overdue === true && job.due_at !== null && !job.held_since) note(overdueNote(job, now))
  if (job.forget !== null) note(`no longer in the configuration; its rows stay, or go with: ${job.forget}`)
  if (job.held_since) note(`held since ${job.held_since}: ${printable(job.held_reason ?? '')}`)
  for (const text of progressNotes(job, now)) note(text, 'progress')
  if (job.waiting_until !== null) {
    const left = inWords(Date.parse(job.waiting_until) - now)
    note(`waits until ${job.waiting_until} (${left}): ${job.waiting_for}`, 'progress')
  }
  // Other notes say what is held, or held back.
  const code = job.failing_code ?? job.error_code
  const isSaid = code === 'REMOVALS_HELD' || (code === 'UNAUTHORIZED' && job.held_since !== null)
  const failing = failingNote(job, now)
  if (failing !== null && !isSaid) note(failing)
  else if (job.error_code && !isSaid && job.last_run_at)
    note(
      `last run ${inWords(now - Date.parse(job.last_run_at))} ago: ${errorText(job.error_code, job.error_message)}`,
    )
  if (job.removals_held > 0) note(heldNote(job))
  if (job.rows_missed > 0) note(missedNote(job), 'usual')
  if (job.untrusted !== null)
    note(printable(`nothing is removed on the word of its last reading: ${job.untrusted}`, 500))
  return notes
}

function tooOldNote({ as_of: asOf }: JobStatus, maxAge: string | null): string {
  return asOf === null
    ? `too old: no whole reading yet, and --max-age is ${maxAge}`
    : `too old: --max-age is ${maxAge}`
}

function tooStaleNote({ fresh_as_of: freshAsOf }: JobStatus, fresh: string | null): string {
  return freshAsOf === null
    ? `too stale: nothing says how fresh its newest rows are, and --fresh is ${fresh}`
    : `too stale: its newest rows are those of ${freshAsOf}, and --fresh is ${fresh}`
}

/** Since when a list fails, and why; null for one that is not failing. */
export function failingNote(job: JobStatus, now: number): string | null {
  if (job.failing_since === null) return null
  const since = `failing since ${job.failing_since} (${inWords(now - Date.parse(job.failing_since))})`
  return `${since}: ${errorText(job.failing_code ?? 'failed', job.failing_message)}`
}

function errorText(code: string, message: string | null): string {
  return `${code}: ${printable(message ?? '', 500)}`
}

function overdueNote({ due_at: dueAt, schedule }: JobStatus, now: number): string {
  const ago = inWords(now - Date.parse(dueAt ?? ''))
  return `overdue: by its schedule (${printable(schedule ?? '', 60)}) it was to be read at ${dueAt}, ${ago} ago`
}

/** Only a daemon reads by the schedule, and sends nothing with a held token. */
function nextRun(
  { next_run_at: at, running, held_since: held }: JobStatus,
  now: number,
  daemon: DaemonStatus,
) {
  if (at === null || running || held || daemon.running !== true) return ''
  return `, next in ${inWords(Date.parse(at) - now)}`
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
  const whole = `as of ${asOf} (${inWords(age)} ago)${coverage}`
  const newer = job.fresh_as_of === null ? 0 : Date.parse(job.fresh_as_of) - Date.parse(asOf)
  const often = job.refreshed_every_ms === null ? '' : `, read every ${inWords(job.refreshed_every_ms)}`
  return newer > 0 ? `new rows as of ${inWords(age - newer)} ago${often}, whole ${whole}` : whole
}
