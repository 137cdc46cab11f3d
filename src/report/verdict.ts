import { isAhead } from '../clock.ts'
import { type ErrorCode, ERRORS, worstExitCode } from '../errors.ts'
import type { StatusRow } from '../store/core/status.ts'
import { grouped, inWords } from '../text.ts'
import type { JobStatus, Status } from './status.ts'

// The one policy of all who tell how things are: the state of each list, whether that is an alarm, and the sentence for all of them.

/** Whether a list is in a state, if it is in none that is graver. */
type Has = (row: StatusRow, isLate: boolean) => boolean

interface StateFacts {
  has: Has
  /** What `status --check` exits with, and all alarms go by. The first of 4, 3, 5, 1 of all lists counts. */
  exit: 0 | 1 | 3 | 4 | 5
  /** Its colour on the page. */
  tone: 'bad' | 'warn' | 'busy' | 'good' | 'quiet'
  /** Of an alarm: the reason, behind the number of such lists. Else how they are; null: well. */
  says: string | null
}

/** What a list can be, the gravest first. A run under way changes nothing of what is an alarm. */
export const STATES = {
  'write failed': alarm(4, 'could not use the mirror', (row) => row.failing_code === 'DATABASE'),
  'token refused': alarm(3, 'held for a refused token', (row) => row.held_since !== null),
  'removals held back': alarm(5, 'with removals held back', (row) => row.removals_held > 0),
  failing: alarm(1, 'failed', (row) => row.failing_since !== null),
  'never read': alarm(1, 'never read', (row, isLate) => isLate && row.last_run_at === null),
  overdue: alarm(1, 'overdue', (_, isLate) => isLate),
  'no answer': state('warn', 'get no answer', (row) => row.retry_since !== null),
  unfinished: state('warn', 'are not read to their ends yet', isUnfinished),
  uncertain: state(
    'warn',
    'were read, but something may be missing',
    (row) => !row.running && row.untrusted !== null,
  ),
  'first reading': state('busy', 'are being read for the first time', (row) => row.as_of === null),
  'being read': state('busy', null, (row) => row.running === true),
  read: state('good', null, () => true),
  'not configured': state('quiet', null, () => true),
}

export type State = keyof typeof STATES

const ORDER = Object.keys(STATES) as State[]

function alarm(exit: StateFacts['exit'], reason: string, has: Has): StateFacts {
  return { exit, tone: 'bad', says: reason, has }
}

function state(tone: StateFacts['tone'], says: StateFacts['says'], has: Has): StateFacts {
  return { exit: 0, tone, says, has }
}

function isUnfinished({ running, as_of, last_run_status: last, walk_origin }: StatusRow): boolean {
  if (running) return false
  return as_of === null || last === 'interrupted' || last === 'running' || walk_origin === 'sync'
}

/** `isLate`: it should have been read by now. */
export function stateOf(row: StatusRow, isLate: boolean): State {
  if (row.configured !== 1) return 'not configured'
  return ORDER.find((name) => STATES[name].has(row, isLate)) ?? 'read'
}

/** The lists, the gravest first. */
export function gravestFirst<Job extends Pick<JobStatus, 'state'>>(jobs: readonly Job[]): Job[] {
  return jobs.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))
}

export function needsAttention({ state: name }: Pick<JobStatus, 'state'>): boolean {
  return STATES[name].exit !== 0
}

/** A run may start this late: it may wait 30 seconds for the file's lock. */
const GRACE_MS = 30_000

/** All attempts at a page together take less, unless the server asks for a pause: then `waiting_until` is set. */
const STALLED_MS = 3_600_000

/**
 * The moment from which the next time of the schedule counts (epoch milliseconds): the end of the last run by schedule or
 * by hand, since a tick during a run is skipped, or `as_of` if that is later; null if there was neither. A killed run does not
 * count: a process in a crash loop would never be overdue.
 */
export function lastAttempt(
  { as_of, last_sync_finished_at }: Pick<StatusRow, 'as_of' | 'last_sync_finished_at'>,
  now: number,
): number | null {
  const known = [as_of, last_sync_finished_at].filter((time) => time !== null && !isAhead(time, now))
  return latestOf(known)
}

/**
 * Whether a list should have been read by now. One that was never read is overdue until a process begins; one that is being
 * read, if no page was written for an hour, by one run or by several that were killed, and no wait explains it.
 * @param dueAt The first time of its schedule since `lastAttempt`; null if none has come.
 */
export function isOverdue(row: StatusRow, dueAt: number | null, now: number): boolean {
  const isDue = lastAttempt(row, now) === null || (dueAt !== null && now - dueAt >= GRACE_MS)
  if (row.configured !== 1 || !isDue) return false
  if (!row.running) return true
  const sign = latestOf([row.walk_updated_at, row.tried_since ?? row.last_run_at])
  return row.waiting_until === null && sign !== null && now - sign > STALLED_MS
}

function latestOf(times: readonly (string | null)[]): number | null {
  const known = times.flatMap((time) => (time === null ? [] : [Date.parse(time)]))
  return known.length === 0 ? null : Math.max(...known)
}

type Told = Pick<Status, 'now' | 'unusable' | 'unpublished' | 'jobs' | 'daemon' | 'config'>

/** What `status --check` exits with. 2: a command that is typed now could not begin. */
export function checkExitCode({ jobs, unusable }: Told, isConfigLost: boolean): number {
  const codes = unusable === null ? jobs.map(({ state: name }) => STATES[name].exit) : [4]
  return worstExitCode([...codes, isConfigLost ? 2 : 0])
}

const CONFIG_LOST =
  'the configuration file is gone or wrong (admin-mirror check says why), and start goes on with the older configuration that it has'

/** How things are, in a sentence. It holds nothing that a server said: pings take it elsewhere. */
export function verdict(status: Told, isConfigLost: boolean): string {
  const { unusable, config } = status
  const jobs = status.jobs.filter(({ state: name }) => name !== 'not configured')
  const old = jobs.filter((job) => job.too_old || job.too_stale)
  const graver =
    unusable ??
    attentionText(jobs) ??
    (isConfigLost ? CONFIG_LOST : null) ??
    some(old, jobs, 'are older than --max-age or --fresh allows')
  const sentences = [graver, noAnswerText(jobs, status.now)].filter((text) => text !== null)
  // Only a configuration says how old a list may be.
  const well = some(jobs, jobs, config === null ? 'were read whole' : 'are well')
  if (sentences.length === 0) sentences.push(stateText(jobs) ?? well ?? 'there are no configured lists')
  return [...sentences, ...asides(status)].join('; ')
}

/** `2 of 3 lists are ...`; null for none. */
function some(lists: readonly JobStatus[], all: readonly JobStatus[], says: string): string | null {
  return lists.length === 0 ? null : `${grouped(lists.length)} of ${grouped(all.length)} lists ${says}`
}

/** How many lists need attention, and why, the gravest reason first; null: none does. */
function attentionText(jobs: readonly JobStatus[]): string | null {
  const inNeed = gravestFirst(jobs.filter(needsAttention))
  const reasons = Array.from(
    Map.groupBy(inNeed, ({ state: name }) => name),
    ([name, lists]) =>
      `${grouped(lists.length)} ${STATES[name].says}${name === 'failing' ? causeOf(lists) : ''}`,
  )
  return some(inNeed, jobs, `need attention (${reasons.join(', ')})`)
}

/** What needs nobody to act yet, the gravest alone; null: nothing. */
function stateText(jobs: readonly JobStatus[]): string | null {
  const gravest = gravestFirst(jobs)[0]?.state ?? 'read'
  const { says } = STATES[gravest]
  return (
    says &&
    some(
      jobs.filter(({ state: name }) => name === gravest),
      jobs,
      says,
    )
  )
}

/** How many lists get no answer, since when and why; null: none. */
function noAnswerText(jobs: readonly JobStatus[], now: string): string | null {
  const lists = jobs.filter(({ state: name }) => name === 'no answer')
  const [since = now] = lists.flatMap(({ problem }) => problem?.since ?? []).toSorted()
  const age = inWords(Date.parse(now) - Date.parse(since))
  const says = `${STATES['no answer'].says} since ${since} (${age})${causeOf(lists)}; they are tried again`
  return some(lists, jobs, says)
}

/** `: the server could not be reached`, where all have that one cause; else nothing. */
function causeOf(lists: readonly JobStatus[]): string {
  const [code = null, ...others] = new Set(lists.map(({ problem }) => problem?.code))
  return code !== null && others.length === 0 && isErrorCode(code) ? `: ${ERRORS[code].meaning}` : ''
}

/** A later version may have left a code that is unknown here. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code)
}

function asides({ config, daemon: { running, processes }, unpublished }: Told): string[] {
  const died = processes.filter((one) => !one.running).length
  const texts = [
    died > 0 && `${died} of ${processes.length} daemons died`,
    config !== null && running === false && died === 0 && 'no daemon runs',
    unpublished !== null && 'the published file is older than the mirror',
    processes.some(({ outdated }) => outdated) &&
      'the running start has an older configuration than the file: restart it',
  ]
  return texts.filter((text) => text !== false)
}
