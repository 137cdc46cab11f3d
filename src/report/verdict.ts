import { isAhead } from '../clock.ts'
import { ERRORS, type ErrorCode, worstExitCode } from '../errors.ts'
import { grouped, inWords } from '../text.ts'
import type { DaemonProcess, JobStatus, Status, StatusFacts } from './status.ts'

/** What follows from the state of a list. */
interface StateFacts {
  /** What `status --check` exits with, and all alarms go by (`/check`, pings, the metric). The first of 4, 3, 5, 1 of all lists counts. */
  exit: 0 | 1 | 3 | 4 | 5
  /** Its colour on the page. */
  tone: 'bad' | 'warn' | 'busy' | 'good' | 'quiet'
  /** How the verdict tells of one such list and of several: `1 of 2 lists needs attention (1 failed)`, else `1 of 2 lists was interrupted`. */
  words?: readonly [one: string, several: string]
}

/** What a list can be, the gravest first. A run under way changes nothing of what is an alarm. */
const TABLE = {
  'write failed': { exit: 4, tone: 'bad', words: both('could not use the mirror') },
  'token refused': { exit: 3, tone: 'bad', words: both('held for a refused token') },
  'removals held back': { exit: 5, tone: 'bad', words: both('with removals held back') },
  failing: { exit: 1, tone: 'bad', words: both('failed') },
  overdue: { exit: 1, tone: 'bad', words: both('overdue') },
  'no answer': { exit: 0, tone: 'warn', words: ['gets no answer', 'get no answer'] },
  unfinished: {
    exit: 0,
    tone: 'warn',
    words: ['is not read to its end yet', 'are not read to their ends yet'],
  },
  'perhaps being read': {
    exit: 0,
    tone: 'warn',
    words: ['is being read, or was interrupted', 'are being read, or were interrupted'],
  },
  'not read yet': { exit: 0, tone: 'warn', words: ['is not read yet', 'are not read yet'] },
  uncertain: {
    exit: 0,
    tone: 'warn',
    words: ['was read, but something may be missing', 'were read, but something may be missing'],
  },
  'being read': { exit: 0, tone: 'busy' },
  read: { exit: 0, tone: 'good' },
  'not configured': { exit: 0, tone: 'quiet' },
} satisfies Record<string, StateFacts>

export type State = keyof typeof TABLE

export const STATES: Readonly<Record<State, StateFacts>> = TABLE

function both(words: string): readonly [string, string] {
  return [words, words]
}

const ORDER = Object.keys(STATES)

/** The lists, the gravest first. */
export function gravestFirst<Job extends Pick<JobStatus, 'state'>>(jobs: readonly Job[]): Job[] {
  return jobs.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state))
}

/** Whether a list is not well, by the one policy of all alarms. */
export function needsAttention({ state }: Pick<JobStatus, 'state'>): boolean {
  return STATES[state].exit !== 0
}

/** What `status --check` exits with: 4 for a mirror that cannot be written, 2 for no configuration, else what the states say. */
export function checkExitCode(
  { jobs, unusable }: Pick<Status, 'unusable' | 'jobs'>,
  { isConfigLost }: Pick<StatusFacts, 'isConfigLost'>,
): number {
  return worstExitCode([
    ...(unusable === null ? jobs.map(({ state }) => STATES[state].exit) : [4]),
    isConfigLost ? 2 : 0,
  ])
}

const CONFIG_LOST =
  'the configuration file is gone or wrong (admin-mirror check says why), and start goes on with the older configuration that it has'

type Told = Pick<Status, 'now' | 'unusable' | 'unpublished' | 'jobs' | 'daemon' | 'config'>

/** The state in one sentence; "well" only while a `start` runs. It holds nothing that a server said: pings take it elsewhere. */
export function verdict(status: Told, facts: Pick<StatusFacts, 'maxAge' | 'fresh' | 'isConfigLost'>): string {
  const { maxAge, fresh, isConfigLost } = facts
  const { jobs, unusable, daemon, config } = status
  const [is, was] = jobs.length === 1 ? ['is', 'was'] : ['are', 'were']
  const all = jobs.length === 1 ? 'the only list' : `all ${grouped(jobs.length)} lists`
  const lacks = `may lack what was added in the last ${fresh?.typed}`
  const old = (isMeant: keyof JobStatus, words: readonly [string, string]) =>
    some(jobs.filter((job) => job[isMeant] === true).length, jobs.length, words)
  const sentence =
    unusable ??
    alarmOf(status) ??
    (isConfigLost ? CONFIG_LOST : null) ??
    old('too_old', [`is older than ${maxAge?.typed}`, `are older than ${maxAge?.typed}`]) ??
    old('too_stale', [lacks, lacks]) ??
    stateSentence(status)
  if (sentence !== null) return `${sentence}${daemonText(status)}`
  // Only a configuration says how old a list may be.
  if (config === null) return `${all} ${was} read whole`
  return `${all} ${is} ${daemon.running === true ? 'well' : 'up to date'}${daemonText(status)}`
}

/** `2 of 3 lists are ...`; null for none. */
function some(number: number, of: number, [one, several]: readonly [string, string]): string | null {
  if (number === 0) return null
  return of === 1
    ? `the only list ${one}`
    : `${grouped(number)} of ${grouped(of)} lists ${number === 1 ? one : several}`
}

/** How many lists need attention, and why, the gravest reason first; null: none does. */
function alarmOf({ jobs, now }: Told): string | null {
  const inNeed = jobs.filter(needsAttention)
  const byState = Map.groupBy(inNeed, ({ state }) => state)
  const reasons = statesOf(byState).map((state) => {
    const lists = byState.get(state) ?? []
    const count = jobs.length === 1 ? '' : `${grouped(lists.length)} `
    return `${count}${reasonText(state, lists, Date.parse(now))}`
  })
  const sentence = some(inNeed.length, jobs.length, ['needs attention', 'need attention'])
  return sentence && `${sentence} (${reasons.join(', ')})`
}

function reasonText(state: State, lists: readonly JobStatus[], now: number): string {
  if (state === 'failing') return `failed${causeOf(lists)}`
  if (state !== 'overdue') return STATES[state].words?.[0] ?? state
  if (lists.every((job) => job.last_run_at === null)) return 'never read'
  return lists.every((job) => isAhead(job.as_of, now)) ? 'read by a clock that was ahead' : 'overdue'
}

/** The states that some lists have, the gravest first. */
function statesOf(lists: ReadonlyMap<State, unknown>): State[] {
  return (ORDER as State[]).filter((state) => lists.has(state))
}

/** What needs nobody to act yet, the gravest first; null: nothing. */
function stateSentence({ jobs, now }: Told): string | null {
  const byState = Map.groupBy(jobs, ({ state }) => state)
  for (const state of statesOf(byState)) {
    const lists = byState.get(state) ?? []
    const { words } = STATES[state]
    if (state === 'no answer') return noAnswerText(lists, jobs.length, now)
    if (words) return some(lists.length, jobs.length, words)
    const first = lists.filter((job) => state === 'being read' && job.as_of === null).length
    const told = some(first, jobs.length, [
      'is being read for the first time',
      'are being read for the first time',
    ])
    if (told !== null) return told
  }
  return null
}

/** How many lists get no answer while their runs try again, since when and why; no alarm goes by it. */
function noAnswerText(lists: readonly JobStatus[], of: number, now: string): string {
  const [since = now] = lists.flatMap(({ problem }) => problem?.since ?? []).toSorted()
  const what = some(lists.length, of, ['gets no answer', 'get no answer'])
  const again = lists.length === 1 ? 'it is tried again' : 'they are tried again'
  return `${what} since ${since} (${inWords(Date.parse(now) - Date.parse(since))})${causeOf(lists)}; ${again}`
}

/** `: the server could not be reached`, where all have that one cause; else nothing. */
function causeOf(lists: readonly JobStatus[]): string {
  const [code, ...others] = new Set(lists.map(({ problem }) => problem?.code))
  // A later version may have left a code that is unknown here.
  if (code == null || others.length > 0 || !Object.hasOwn(ERRORS, code)) return ''
  return `: ${ERRORS[code as ErrorCode].meaning}`
}

/** Whether a `start` runs with another configuration than the file has now. */
export function isOutdated({ running, outdated }: DaemonProcess): boolean {
  return running !== false && outdated
}

function daemonText(status: Told): string {
  const isOld = status.daemon.processes.some(isOutdated)
  return `${livingText(status)}${status.unpublished === null ? '' : '; the published file is older than the mirror'}${isOld ? '; the running start has an older configuration than the file: restart it' : ''}`
}

function livingText({ daemon: { running, processes }, jobs, config, unusable }: Told): string {
  if (config === null) return ''
  const died = processes.filter((one) => one.running === false).length
  if (running === true)
    return died === 0 ? '' : `; ${grouped(died)} of ${grouped(processes.length)} daemons died`
  if (running === null)
    return processes.length === 0
      ? '; a daemon that runs could not write that down'
      : '; this user cannot see whether a daemon is running'
  // A command would meet what somebody has to mend first.
  const isStuck = unusable !== null || jobs.some((job) => needsAttention(job) && job.state !== 'overdue')
  const cure = (verb: string) => (isStuck ? '' : `: ${verb}, or run sync for newer rows`)
  if (died > 0) return `; the daemon died${cure('start it again')}`
  // A command that somebody typed is at work.
  return jobs.some((job) => job.running === true) ? '' : `; no daemon runs${cure('start one')}`
}
