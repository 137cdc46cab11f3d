import { ERRORS, type ErrorCode } from '../errors.ts'
import type { ListTrouble, StatusRow } from '../store/core/status.ts'
import { grouped, inWords } from '../text.ts'
import type { DaemonProcess, JobStatus, Status } from './status.ts'

/**
 * What `status --check` exits with: 4 for a mirror that cannot be written, or that the last run of a list could not use, else 3 for
 * a held token, else 5 for removals held back, else 1 for a list that is failing or overdue. All alarms go by this code (`/check`,
 * pings, the metric); `verdict` and the colours of the page also show what needs nobody to act yet.
 */
export function checkExitCode({
  jobs,
  unusable,
}: Pick<Status, 'unusable' | 'jobs'>): Status['check_exit_code'] {
  if (unusable !== null) return 4
  const configured = jobs.filter((job) => job.configured)
  if (configured.some((job) => job.failing_code === 'DATABASE')) return 4
  if (configured.some((job) => job.held_since !== null)) return 3
  if (configured.some((job) => job.removals_held > 0)) return 5
  return configured.some(needsAttention) ? 1 : 0
}

/** Whether a list is not well: its token is held, removals are held back, it is failing, or overdue. A run under way changes nothing. */
export function needsAttention(job: JobStatus): boolean {
  return job.configured && (troubleCode(job) !== null || job.overdue === true)
}

/** The error code of what is wrong with a list; null for one that is well, or merely overdue. */
export function troubleCode(list: ListTrouble): string | null {
  if (list.held_since !== null) return 'UNAUTHORIZED'
  if (list.removals_held > 0) return 'REMOVALS_HELD'
  return list.failing_since === null ? null : (list.failing_code ?? 'INTERNAL')
}

type Facts = Pick<Status, 'now' | 'unusable' | 'jobs' | 'max_age' | 'fresh' | 'daemon' | 'timezone'>

/** The state in one sentence; "well" only while a `start` runs. It holds nothing that a server said: pings take it elsewhere. */
export function verdict(status: Facts): string {
  if (status.unusable !== null) return `${status.unusable}${daemonText(status)}`
  const problem = [problemOf(status), noAnswerText(status)].filter((text) => text !== null).join('; ')
  if (problem !== '') return `${problem}${daemonText(status)}`
  const { jobs, daemon, timezone } = status
  const all = jobs.length === 1 ? 'the only list' : `all ${grouped(jobs.length)} lists`
  const [is, was] = jobs.length === 1 ? ['is', 'was'] : ['are', 'were']
  // Only a configuration says how old a list may be.
  if (timezone === null) return `${all} ${was} read whole`
  if (daemon.running === true) return `${all} ${is} well${daemonText(status)}`
  return `${all} ${is} up to date${daemonText(status)}`
}

/** What is said of one list, and of several. */
type Words = readonly [one: string, several: string]

/** The gravest problem; null: none. It says "needs attention" only of what `checkExitCode` counts. */
function problemOf({ jobs, max_age: maxAge, fresh, now }: Facts): string | null {
  const inNeed = jobs.filter(needsAttention)
  if (inNeed.length > 0)
    return `${some(inNeed.length, jobs.length, ['needs attention', 'need attention'])}${reasonsOf(inNeed, jobs.length, Date.parse(now))}`
  const lacks = `may lack what was added in the last ${fresh}`
  const problems: [isMeant: (job: JobStatus) => boolean, ...words: Words][] = [
    [(job) => job.too_old === true, `is older than ${maxAge}`, `are older than ${maxAge}`],
    [(job) => job.too_stale === true, lacks, lacks],
    [(job) => job.configured && job.last_run_status === 'interrupted', 'was interrupted', 'were interrupted'],
    [
      (job) => job.state === 'being read' && job.as_of === null,
      'is being read for the first time',
      'are being read for the first time',
    ],
    // Of those without an answer, that is told instead.
    [
      (job) => job.configured && job.as_of === null && job.no_answer_since === null,
      'is not read whole yet',
      'are not read whole yet',
    ],
    [
      (job) => job.last_run_status === 'running' && job.running === null,
      'is being read, or was interrupted',
      'are being read, or were interrupted',
    ],
    [
      (job) => job.state === 'uncertain',
      'was read, but something may be missing',
      'were read, but something may be missing',
    ],
    [(job) => job.next !== null, 'has a next step', 'have a next step'],
  ]
  for (const [isMeant, ...words] of problems) {
    const number = jobs.filter(isMeant).length
    if (number > 0) return some(number, jobs.length, words)
  }
  return null
}

function some(number: number, of: number, [one, several]: Words): string {
  if (of === 1) return `the only list ${one}`
  return `${grouped(number)} of ${grouped(of)} lists ${number === 1 ? one : several}`
}

/** How many lists get no answer while their runs try again, and since when; no alarm goes by it. */
function noAnswerText({ jobs, now }: Facts): string | null {
  const without = jobs.filter((job) => job.no_answer_since !== null)
  const since = without.map((job) => job.no_answer_since ?? '').toSorted()[0]
  if (since === undefined) return null
  const what = some(without.length, jobs.length, ['gets no answer', 'get no answer'])
  const cause = causeOf(without.map((job) => job.no_answer_code))
  const again = without.length === 1 ? 'it is tried again' : 'they are tried again'
  return `${what} since ${since} (${inWords(Date.parse(now) - Date.parse(since))})${cause}; ${again}`
}

/** Whether a list is late by its schedule. While its token is held it is not: the hold is named instead. */
function isLate({ held_since: held, overdue }: JobStatus): boolean {
  return held === null && overdue === true
}

/** The gravest reasons first. `lists`: how many there are in all. */
function reasonsOf(jobs: readonly JobStatus[], lists: number, now: number): string {
  const count = (isMeant: (job: JobStatus) => boolean) => jobs.filter(isMeant).length
  const failed = jobs.filter((job) => job.held_since === null && job.failing_since !== null)
  const reasons: [number, string][] = [
    [count((job) => job.held_since !== null), 'held for a refused token'],
    [count((job) => job.removals_held > 0), 'with removals held back'],
    [failed.length, `failed${causeOf(failed.map((job) => job.failing_code))}`],
    [count((job) => isLate(job) && job.last_run_at === null), 'never read'],
    [count((job) => isLate(job) && job.last_run_at !== null), 'overdue'],
    [count((job) => isLate(job) && isAhead(job.as_of, now)), 'read by a clock that was ahead'],
  ]
  const told = reasons.flatMap(([number, what]) =>
    number === 0 ? [] : [lists === 1 ? what : `${grouped(number)} ${what}`],
  )
  return told.length === 0 ? '' : ` (${told.join(', ')})`
}

/** `: the server could not be reached`, where all have that one cause; else nothing. */
function causeOf(codes: readonly (string | null)[]): string {
  const [code, ...others] = new Set(codes)
  // A later version may have left a code that is unknown here.
  if (code == null || others.length > 0 || !Object.hasOwn(ERRORS, code)) return ''
  return `: ${ERRORS[code as ErrorCode].meaning}`
}

/** Whether a `start` runs with another configuration than the file has now. */
export function isOutdated({ running, outdated }: DaemonProcess): boolean {
  return running !== false && outdated
}

function daemonText(facts: Facts): string {
  const isOld = facts.daemon.processes.some(isOutdated)
  return `${livingText(facts)}${isOld ? '; the running start has an older configuration than the file: restart it' : ''}`
}

function livingText({ daemon, jobs, timezone }: Facts): string {
  if (timezone === null) return ''
  const { processes } = daemon
  const lost = processes.filter(({ running }) => running === false).length
  if (daemon.running === true)
    return lost === 0 ? '' : `; ${grouped(lost)} of ${grouped(processes.length)} daemons died`
  if (daemon.running === null) return '; this user cannot see whether a daemon is running'
  // A command would meet what somebody has to mend first.
  const isStuck = jobs.some(
    (job) => job.held_since !== null || job.removals_held > 0 || job.failing_since !== null,
  )
  const cure = isStuck
    ? ['', '']
    : [': start it again, or run sync for newer rows', ': start one, or run sync for newer rows']
  if (processes.length > 0) return `; the daemon died${cure[0]}`
  // A command that somebody typed is at work.
  if (jobs.some((job) => job.running === true)) return ''
  return `; no daemon runs${cure[1]}`
}

/** A run may start this late: it may wait 30 seconds for the file's lock. */
const GRACE_MS = 30_000

/** All attempts at a page together take less, unless the server asks for a pause: then `waiting_until` is set. */
const STALLED_MS = 3_600_000

/** Clocks of the processes on a mirror may differ by this much. */
const AHEAD_MS = 60_000

/** Whether a time is in the future: the clock that it was taken from was ahead, so it says nothing of how fresh a list is. */
export function isAhead(time: string | null, now: number): boolean {
  return time !== null && Date.parse(time) > now + AHEAD_MS
}

/**
 * The moment from which the next time of the schedule counts (epoch milliseconds): the end of the last run by schedule or
 * by hand, since a tick during a run is skipped, or `as_of` if that is later; null if there was neither. A killed run does not
 * count: a process in a crash loop would never be overdue.
 */
export function lastAttempt(
  row: Pick<StatusRow, 'as_of' | 'last_sync_finished_at'>,
  now: number,
): number | null {
  const times = [row.as_of, row.last_sync_finished_at].flatMap((time) =>
    time === null || isAhead(time, now) ? [] : [Date.parse(time)],
  )
  return times.length === 0 ? null : Math.max(...times)
}

/**
 * Whether a list should have been read by now. One that was never read is overdue until a process begins.
 * @param dueAt The first time of its schedule since `lastAttempt`; null if none has come.
 */
export function isOverdue(row: StatusRow, dueAt: number | null, now: number): boolean {
  if (row.configured !== 1) return false
  const isNeverTried = lastAttempt(row, now) === null
  if (!isNeverTried && (dueAt === null || now - dueAt < GRACE_MS)) return false
  return row.running === false || isStalled(row, now)
}

/** No page written for an hour, by one run or by several that were killed, and no recorded wait explains it. */
function isStalled(row: StatusRow, now: number): boolean {
  if (row.waiting_until !== null) return false
  const signs = [row.walk_updated_at, row.tried_since ?? row.last_run_at].flatMap((time) =>
    time ? [Date.parse(time)] : [],
  )
  return signs.length > 0 && now - Math.max(...signs) > STALLED_MS
}
