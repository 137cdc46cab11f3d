import type { QueueDepth } from '../store/postgres/read/status.ts'
import { counted, grouped, inWords, printable } from '../text.ts'
import { isStopped } from './next-step.ts'
import type { DaemonStatus, JobStatus, Status } from './status.ts'
import { isAhead, needsAttention } from './verdict.ts'

/**
 * How things are, the lists, and what to do next.
 * @param queryCommand `admin-mirror query`, with the option that names this mirror if there is no configuration.
 */
export function statusText(status: Status, queryCommand: string): string {
  const lines = [`mirror: ${status.database}`, daemonLine(status)]
  if (status.queue) lines.push(`queue: ${queueText(status.queue)}`)
  lines.push(status.verdict, '', ...listsText(status, queryCommand))
  if (status.waiting_until !== null)
    lines.push('', `the rate limit asks for a pause until ${status.waiting_until}`)
  if (status.refreshes.length > 0) lines.push('', ...status.refreshes)
  if (status.advice.length > 0) lines.push('', ...status.advice.map((text) => `advice: ${text}`))
  if (status.notes.length > 0) lines.push('', ...status.notes.map((text) => `note: ${text}`))
  lines.push('', ...nextLines(status, queryCommand))
  return lines.map((line) => `${line}\n`).join('')
}

function daemonLine({ daemon, timezone, now }: Status): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${inWords(Date.parse(now) - Date.parse(since))})`
    if (running === true) return `runs ${ago}, process ${pid}`
    return running === null
      ? `process ${pid} began ${ago}; this user cannot see whether it still runs`
      : `process ${pid}, running ${ago}, died without being stopped`
  })
  if (told.length > 0) return `daemon: ${told.join('; ')}`
  return timezone === null
    ? 'daemon: none is known to use this file'
    : 'daemon: none runs; start it by its service or admin-mirror start'
}

/** What waits for the workers, in words. */
export function queueText({ waiting, oldest_ms: oldest, running, failed }: QueueDepth): string {
  const wait =
    oldest === null
      ? 'no list waits'
      : `${counted(waiting, 'list')} ${waiting === 1 ? 'waits' : 'wait'}, the first for ${inWords(oldest)}`
  const failures = failed === 0 ? '' : `; ${counted(failed, 'run')} failed in the last hour`
  return `${wait}; ${grouped(running)} taken by workers${failures}`
}

/** The next steps, each once, and at most MOST_STEPS. */
function nextLines(status: Status, queryCommand: string): string[] {
  const { jobs, daemon, timezone, unusable } = status
  const isDead = timezone !== null && daemon.processes.length > 0 && daemon.running === false
  const begin = isDead ? ['start the daemon again, by its service if it has one: admin-mirror start'] : []
  const room = unusable === null ? [] : ['fix the problem above; nothing is written until then']
  const all = [
    ...new Set([...room, ...begin, ...stopOthers(status), ...jobs.flatMap(({ next }) => next ?? [])]),
  ]
  const nothing = jobs.some((job) => job.too_old || job.too_stale)
    ? 'wait for the walks in progress'
    : `nothing to do; ask the mirror with ${queryCommand} "SELECT * FROM sync_status"`
  const [first = nothing, ...others] = all.slice(0, MOST_STEPS)
  const more = all.length - MOST_STEPS
  return [
    `next: ${first}`,
    ...others.map((next) => `      ${next}`),
    ...(more > 0 ? [`      ... and ${grouped(more)} more`] : []),
  ]
}

const MOST_STEPS = 5

/** Workers that share a queue divide the lists. Without a queue, each daemon reads every list. */
function stopOthers({ daemon, queue }: Status): string[] {
  const running = daemon.processes.filter((one) => one.running === true)
  if (queue || running.length < 2) return []
  return [
    `stop all daemons but one, since each of them reads every list: ${running.map(({ pid }) => pid).join(', ')}`,
  ]
}

/** More lists do not fit on a screen. */
const MOST_WHOLE = 50

/** The lists, if they fit on a screen; else those with something to report, some that are being read, and how many more there are. */
export function listsText(status: Status, queryCommand: string): string[] {
  const { jobs } = status
  if (jobs.length <= MOST_WHOLE) return jobs.flatMap((job) => jobLines(job, status))
  const { notable = [], usual = [] } = Object.groupBy(jobs, (job) =>
    isNotable(job, status) ? 'notable' : 'usual',
  )
  const beingRead = usual.filter(({ running }) => running).slice(0, MOST_WHOLE)
  const shown = [...notable, ...beingRead]
  const lines = shown.flatMap((job) => jobLines(job, status))
  const others = jobs.length - shown.length
  if (others === 0) return lines
  const count = shown.length === 0 ? counted(others, 'list') : counted(others, 'more list')
  return [
    ...lines,
    `${count}, read or being read as they should be: ${queryCommand} "SELECT * FROM sync_status"`,
  ]
}

/** A text below the line of a list. `usual`: healthy lists have it, too. */
interface Note {
  kind: 'problem' | 'progress' | 'usual'
  text: string
}

/** A list: its rows, as of when and how sure; below it its notes. */
function jobLines(job: JobStatus, status: Status): string[] {
  const now = Date.parse(status.now)
  const name = `${printable(job.organization, 40)} ${job.collection}`.padEnd(28)
  return [
    `${name}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${freshness(job, status.daemon)}${nextTime(job, now, status.daemon)}`,
    ...notesOf(job, now, status).map(({ text }) => `    ${text}`),
  ]
}

/** Whether there is more to report of a list than that it is being read, or was read whole. */
function isNotable(job: JobStatus, status: Status): boolean {
  const isRunning = job.running === true
  const isSure = isRunning || (job.as_of !== null && job.coverage !== 'drifted')
  const isQuiet = notesOf(job, Date.parse(status.now), status).every(
    ({ kind }) => kind === 'usual' || (isRunning && kind === 'progress'),
  )
  return job.next !== null || !isSure || !isQuiet
}

/** A line for each list that needs attention: what is wrong, and what to type. After `most` of them one line counts the others. */
export function attentionLines(status: Status, most: number): string[] {
  const now = Date.parse(status.now)
  const lines = status.jobs.filter(needsAttention).map((job) => {
    const why = notesOf(job, now, status).flatMap(({ kind, text }) => (kind === 'problem' ? [text] : []))
    const name = `${printable(job.organization, 40)} ${job.collection}`
    // A list that was never tried has no note.
    if (why.length === 0) why.push('never read')
    return `${name}: ${[...why, ...(job.next === null ? [] : [`next: ${job.next}`])].join('; ')}`
  })
  const more = lines.length - most
  return more > 0 ? [...lines.slice(0, most), `and ${counted(more, 'more list')}`] : lines
}

function notesOf(job: JobStatus, now: number, { max_age: maxAge, fresh }: Status): Note[] {
  const notes: Note[] = []
  const note = (text: string, kind: Note['kind'] = 'problem') => notes.push({ kind, text })
  if (isAhead(job.as_of, now) || isAhead(job.fresh_as_of, now))
    note('read by a clock that was ahead: its times are in the future, and say nothing of how fresh it is')
  if (job.too_old === true) note(tooOldNote(job, maxAge))
  if (job.too_stale === true) note(tooStaleNote(job, fresh))
  if (job.overdue === true && job.due_at !== null && !job.held_since) note(overdueNote(job, now))
  if (job.forget !== null) note(`no longer in the configuration; its rows stay, or go with: ${job.forget}`)
  if (job.held_since) note(tokenHeldNote(job))
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
  if (job.removals_held > 0) note(removalsHeldNote(job))
  if (job.rows_missed > 0) note(missedNote(job), 'usual')
  if (job.untrusted !== null) note(printable(`its last walk removed nothing: ${job.untrusted}`, 500))
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
    : `too stale: rows added after ${freshAsOf} may be missing, and --fresh is ${fresh}`
}

/** Since when a list fails, and why; null for one that is not failing. */
export function failingNote(job: JobStatus, now: number): string | null {
  if (job.failing_since === null) return null
  const since = `failing since ${job.failing_since} (${inWords(now - Date.parse(job.failing_since))})`
  return `${since}: ${errorText(job.failing_code ?? 'failed', job.failing_message)}`
}

function errorText(code: string, message: string | null): string {
  // A copy for readers has no messages.
  return message ? `${code}: ${printable(message, 500)}` : code
}

function overdueNote({ due_at: dueAt, schedule }: JobStatus, now: number): string {
  const ago = inWords(now - Date.parse(dueAt ?? ''))
  return `overdue: by its schedule (${printable(schedule ?? '', 60)}) it should have been read at ${dueAt}, ${ago} ago`
}

/** Only a daemon reads by the schedule, and sends nothing with a held token. */
function nextTime(
  { next_run_at: at, running, held_since: held }: JobStatus,
  now: number,
  daemon: DaemonStatus,
) {
  if (at === null || running || held || daemon.running !== true) return ''
  return `, next in ${inWords(Date.parse(at) - now)}`
}

/** About rows that one trusted walk missed. Until the next walk they count like any others. */
function missedNote({ rows_missed: missed }: JobStatus): string {
  return `the last walk did not see ${counted(missed, 'row')}; what the next walk does not see either is removed, or held back`
}

/** Since when a list's token is held, and why. */
export function tokenHeldNote({ held_since: since, held_reason: reason }: JobStatus): string {
  return `held since ${since}: ${printable(reason ?? 'its token was refused', 500)}`
}

/** How many removals of a list are held back, and why. */
export function removalsHeldNote({ removals_held: held, held_why: why, rows }: JobStatus): string {
  const reason = why === 'empty' ? 'the list came without items' : 'more than the brake allows in one walk'
  return `${grouped(held)} of these ${counted(rows, 'row')} left the list and are held back: ${reason}`
}

function freshness(
  { as_of: asOf, age_ms: age, last_run_at: lastRun, ...job }: JobStatus,
  daemon: DaemonStatus,
): string {
  if (asOf === null || age === null) return lastRun === null ? 'never synced' : 'never read whole'
  const coverage = job.coverage ? `, ${job.coverage}` : ''
  const whole = `as of ${asOf} (${age < 0 ? 'in the future' : `${inWords(age)} ago`})${coverage}`
  const newer = job.fresh_as_of === null ? 0 : Date.parse(job.fresh_as_of) - Date.parse(asOf)
  const interval =
    job.refreshed_every_ms === null || daemon.running !== true
      ? ''
      : `, read every ${inWords(job.refreshed_every_ms)}`
  return newer > 0 ? `new rows as of ${inWords(age - newer)} ago${interval}, whole ${whole}` : whole
}

/** Words for work that is no walk, or comes before one. */
const WORK_WORDS: Readonly<Partial<Record<NonNullable<JobStatus['work']>, string>>> = {
  verify: 'being compared (verify)',
  refresh: 'being refreshed',
}

/**
 * Notes on a job's work: what a process does with it, how far each open walk is and what continues it, and since when a page is
 * being retried. `now`: epoch milliseconds.
 */
export function progressNotes(job: JobStatus, now: number): string[] {
  const isBegun = job.last_run_status === 'running' && job.running !== false && job.work !== 'verify'
  const ofBackfill = isBegun && job.last_run_trigger === 'backfill'
  const ofSync = isBegun && !ofBackfill
  const notes: string[] = []
  if (job.running && !isBegun) notes.push(`running: ${WORK_WORDS[job.work ?? 'manual'] ?? 'about to begin'}`)
  if (ofSync) notes.push(runText(job, walkText(job), job.walk_updated_at))
  else if (isStopped(job) && job.error_code === null)
    notes.push(`interrupted: the run of ${job.last_run_at} ended without a result`)
  if (job.retry_since !== null) notes.push(retryText(job, job.retry_since, now))
  const isEmpty = job.walk_rows_seen === 0 && job.walk_total === null
  if (!ofSync && job.walk_origin === 'sync' && !isEmpty) {
    const then = job.configured ? '; the next run continues there' : ''
    notes.push(`stopped at ${walkText(job)}${then}`)
  }
  for (const walk of job.backfills) {
    const where = positionText(walk.page, walk.rows_seen, walk.total)
    if (ofBackfill && walk.is_last_run) notes.push(runText(job, `a backfill at ${where}`, walk.updated_at))
    else notes.push(`a backfill stopped at ${where}; to continue it: ${walk.next}`)
  }
  return notes
}

/** The note of a page that is being retried: when it is asked for next, since when it has failed, and how. */
function retryText({ retry_until: until, retry_error: error }: JobStatus, since: string, now: number) {
  const left = Date.parse(until ?? '') - now
  const next = left > 0 ? `waits until ${until} (${inWords(left)}) to ask again` : 'asks again'
  return `${next}, since ${since} (${inWords(now - Date.parse(since))}): ${printable(error ?? '', 500)}`
}

function runText(job: JobStatus, where: string, updatedAt: string | null): string {
  if (job.running) return `running since ${job.last_run_at}: ${where}`
  return `began ${job.last_run_at}, last page written ${updatedAt ?? job.last_run_at}: ${where}; this user cannot see whether it still runs`
}

function walkText(job: JobStatus): string {
  const { walk_percent: percent, walk_left_ms: left } = job
  const where = positionText(job.walk_page, job.walk_rows_seen, job.walk_total)
  const share = percent === null ? '' : ` (${percent} %)`
  return `${where}${share}${left === null ? '' : `, about ${inWords(left)} left`}`
}

function positionText(page: number | null, seen: number | null, total: number | null): string {
  return `page ${page === null ? 'one past the last' : grouped(page)}${seen === null ? '' : `, ${seenText(seen, total)}`}`
}

function seenText(seen: number, total: number | null): string {
  if (seen === 0 && total === null) return 'nothing read yet'
  return `${grouped(seen)}${total === null ? '' : ` of ${grouped(total)}`} items seen`
}
