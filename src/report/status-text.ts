import type { QueueDepth } from '../store/postgres/read/queue.ts'
import { counted, grouped, inWords, printable } from '../text.ts'
import type { JobStatus } from './job-status.ts'
import { missedText, progressNotes } from './progress.ts'
import type { DaemonStatus, Status } from './status.ts'

/** What users type. */
interface Typed {
  /** How the program was called. */
  program: string
  /** How to ask this file. */
  ask: string
}

const TYPED: Typed = { program: 'admin-mirror', ask: 'admin-mirror query' }

/** One line per job: the list, its rows, as of when and how sure; below it what needs attention. */
export function statusText(status: Status, { program, ask }: Typed = TYPED): string {
  const now = Date.parse(status.now)
  const lines = [`mirror: ${status.database}`, daemonLine(status, program)]
  if (status.queue) lines.push(`queue: ${queueText(status.queue)}`)
  lines.push(status.verdict, '')
  for (const job of status.jobs) lines.push(...jobLines(job, now, status))
  if (status.waiting_until !== null)
    lines.push('', `the rate limit asks for a pause until ${status.waiting_until}`)
  if (status.advice.length > 0) lines.push('', ...status.advice.map((text) => `advice: ${text}`))
  lines.push('', ...nextLines(status, program, ask))
  return lines.map((line) => `${line}\n`).join('')
}

function daemonLine({ daemon, timezone, now }: Status, program: string): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${inWords(Date.parse(now) - Date.parse(since))})`
    if (running === true) return `runs ${ago}, process ${pid}`
    return running === null
      ? `process ${pid} began ${ago}; this user cannot see whether it still runs`
      : `process ${pid}, at work ${ago}, died without being stopped`
  })
  if (told.length > 0) return `daemon: ${told.join('; ')}`
  return timezone === null ? 'daemon: none on this file' : `daemon: none runs; ${program} start begins one`
}

/** What waits for the workers, in words. */
export function queueText({ waiting, oldest_ms: oldest, running, failed }: QueueDepth): string {
  const wait =
    oldest === null
      ? 'no list waits'
      : `${counted(waiting, 'list')} ${waiting === 1 ? 'waits' : 'wait'}, the first for ${inWords(oldest)}`
  const trouble = failed === 0 ? '' : `; ${counted(failed, 'run')} failed in the last hour`
  return `${wait}; ${grouped(running)} in hand${trouble}`
}

/** The next steps, each once, and at most MOST_STEPS. */
function nextLines(status: Status, program: string, ask: string): string[] {
  const { jobs, daemon, timezone } = status
  const isDead = timezone !== null && daemon.processes.length > 0 && daemon.running === false
  const begin = isDead ? [`begin the daemon again: ${program} start`] : []
  const all = [...new Set([...begin, ...endOne(status), ...jobs.flatMap(({ next }) => next ?? [])])]
  const nothing = jobs.some((job) => job.too_old || job.too_stale)
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

/** Workers share a queue. Where there is none, each daemon reads every list. */
function endOne({ daemon, queue }: Status): string[] {
  const running = daemon.processes.filter((one) => one.running === true)
  if (queue || running.length < 2) return []
  return [
    `end all daemons but one, since each of them reads every list: ${running.map(({ pid }) => pid).join(', ')}`,
  ]
}

function jobLines(job: JobStatus, now: number, { max_age: maxAge, fresh, daemon }: Status): string[] {
  const name = `${printable(job.organization, 40)} ${job.collection}`.padEnd(28)
  const lines = [
    `${name}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${freshness(job)}${nextRun(job, now, daemon)}`,
  ]
  const note = (text: string) => lines.push(`    ${text}`)
  if (job.too_old === true) note(tooOldNote(job, maxAge))
  if (job.too_stale === true) note(tooStaleNote(job, fresh))
  if (job.overdue === true && job.due_at !== null && !job.held_since) note(overdueNote(job, now))
  if (job.forget !== null) note(`no longer in the configuration; its rows stay, or go with: ${job.forget}`)
  if (job.held_since) note(`held since ${job.held_since}: ${printable(job.held_reason ?? '')}`)
  for (const text of progressNotes(job)) note(text)
  if (job.waiting_until !== null)
    note(
      `waits until ${job.waiting_until} (${inWords(Date.parse(job.waiting_until) - now)}): ${job.waiting_for}`,
    )
  // Other notes say what is held, or held back.
  const isSaid = job.error_code === 'REMOVALS_HELD' || (job.error_code === 'UNAUTHORIZED' && job.held_since)
  if (job.error_code && !isSaid && job.last_run_at) {
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

function tooStaleNote({ fresh_as_of: freshAsOf }: JobStatus, fresh: string | null): string {
  return freshAsOf === null
    ? `too stale: nothing says how fresh its newest rows are, and --fresh is ${fresh}`
    : `too stale: its newest rows are those of ${freshAsOf}, and --fresh is ${fresh}`
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
