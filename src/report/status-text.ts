import { ERRORS, type ErrorCode } from '../errors.ts'
import { counted, grouped, inWords, printable } from '../text.ts'
import type { NextStep } from './next-step.ts'
import type { Problem } from './notes.ts'
import type { JobStatus, Status } from './status.ts'
import { gravestFirst, needsAttention, STATES } from './verdict.ts'

/**
 * How things are, what is wrong and why, the lists, and what to do next.
 * @param queryCommand `admin-mirror query`, with the option that names this mirror if there is no configuration.
 */
export function statusText(status: Status, queryCommand: string): string {
  const lines = [
    status.verdict,
    ...problemLines(status, status.jobs),
    '',
    ...listLines(status, queryCommand),
    ...status.notes.map((text) => `note: ${printable(text, 1000)}`),
    '',
    `mirror: ${status.database}`,
    ...(status.unpublished === null
      ? []
      : [`published file: older than the mirror: ${printable(status.unpublished, 500)}`]),
    `daemon: ${daemonText(status)}`,
    ...nextLines(status, queryCommand),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/** Which `start` works on the mirror. */
export function daemonText({ daemon, config, now, jobs }: Status): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${agoText(since, now)})`
    if (running === true) return `runs ${ago}, process ${pid}`
    return running === null
      ? `process ${pid} began ${ago}; this user cannot see whether it still runs`
      : `process ${pid}, running ${ago}, died without being stopped`
  })
  if (told.length > 0) return told.join('; ')
  if (config === null) return 'none is known to use this file'
  if (daemon.running === null) return 'none is seen, but one that runs could not write that down'
  return jobs.some(({ running }) => running === true)
    ? 'none runs; a command is at work'
    : 'none runs; start it by its service or admin-mirror start'
}

function agoText(time: string, now: string): string {
  return inWords(Date.parse(now) - Date.parse(time))
}

/** Of one cause so many lists are named. */
const MOST_NAMED = 4

/** What is wrong with these lists, each cause once: which lists have it, and since when. `textOf`: the cause in words. */
export function problemLines(
  { now }: Pick<Status, 'now'>,
  jobs: readonly JobStatus[],
  textOf = ({ text }: Problem) => text,
): string[] {
  const wrong = gravestFirst(jobs).flatMap((job) =>
    job.problem === null ? [] : [{ job, problem: job.problem }],
  )
  const causes = Map.groupBy(wrong, ({ job, problem }) => `${job.state}: ${textOf(problem)}`)
  return Array.from(causes, ([cause, lists]) => {
    const names = lists
      .slice(0, MOST_NAMED)
      .map(({ job }) => nameOf(job))
      .join(', ')
    const more = lists.length > MOST_NAMED ? ` and ${counted(lists.length - MOST_NAMED, 'more list')}` : ''
    const [since] = lists.flatMap(({ problem }) => problem.since ?? []).toSorted()
    const [state, ...words] = cause.split(': ')
    const time = since === undefined ? '' : ` since ${since} (${agoText(since, now)})`
    return `${names}${more}: ${state}${time}: ${words.join(': ')}`
  })
}

/** Causes that are told. */
const MOST_TOLD = 20

/** What a monitor is told: the verdict, what is wrong with the lists that it counts, and what to do. */
export function alarmText(status: Status): string {
  const lines = problemLines(status, status.jobs.filter(needsAttention))
  return [
    status.verdict,
    ...firstOf(lines, MOST_TOLD),
    ...status.next.slice(0, MOST_TOLD).map((step) => `next: ${stepText(step)}`),
  ].join('\n')
}

/** The same for a ping, which others see: what a server said is left out, since it may hold an item's data. */
export function pingText(status: Status): string {
  const lines = problemLines(status, status.jobs.filter(needsAttention), ({ code, text }) => {
    if (code === null) return text
    // A later version may have left a code that is unknown here.
    return Object.hasOwn(ERRORS, code)
      ? `${code} (${ERRORS[code as ErrorCode].meaning})`
      : printable(code, 60)
  })
  return [status.verdict, ...firstOf(lines, MOST_TOLD)].join('\n')
}

function firstOf(lines: readonly string[], most: number): string[] {
  const more = lines.length - most
  return more <= 0 ? [...lines] : [...lines.slice(0, most), `and ${counted(more, 'more cause')}`]
}

export function stepText({ say, command }: NextStep): string {
  return [say, command].filter((part) => part !== null).join(': ')
}

function nameOf({ organization, collection }: JobStatus): string {
  return `${printable(organization, 40)} ${printable(collection, 60)}`
}

const MOST_STEPS = 5

/** Whether a run is to be waited for. */
function isAwaited({ state, as_of: asOf, too_old: tooOld, too_stale: tooStale }: JobStatus): boolean {
  return (
    tooOld === true || tooStale === true || state === 'no answer' || (state === 'being read' && asOf === null)
  )
}

/** The next steps. That there is nothing to do is said only where `status --check` exits with 0. */
function nextLines({ next, jobs, check_exit_code: code }: Status, queryCommand: string): string[] {
  const nothing =
    code !== 0 || jobs.some(isAwaited)
      ? 'wait for the runs in progress'
      : `nothing to do; ask the mirror with ${queryCommand} "SELECT * FROM sync_status"`
  const [first = nothing, ...others] = next.slice(0, MOST_STEPS).map(stepText)
  const more = next.length - MOST_STEPS
  return [
    `next: ${first}`,
    ...others.map((step) => `      ${step}`),
    ...(more > 0 ? [`      ... and ${grouped(more)} more`] : []),
  ]
}

/** More lists do not fit on a screen. */
const MOST_WHOLE = 50

/** The lists, if they fit on a screen; else those that are not well, some that are being read, and how many more there are. */
function listLines(status: Status, queryCommand: string): string[] {
  const { jobs } = status
  const lines = (shown: readonly JobStatus[]) => shown.flatMap((job) => jobLines(job, status))
  if (jobs.length <= MOST_WHOLE) return lines(jobs)
  const beingRead = jobs.filter((job) => isUsual(job) && job.running === true).slice(0, MOST_WHOLE)
  const shown = [...jobs.filter((job) => !isUsual(job)), ...beingRead]
  const others = jobs.length - shown.length
  const rest = `${counted(others, shown.length === 0 ? 'list' : 'more list')}, read or being read as they should be: ${queryCommand} "SELECT * FROM sync_status"`
  return [...lines(shown), ...(others === 0 ? [] : [rest])]
}

function isUsual({ state, too_old: tooOld, too_stale: tooStale }: JobStatus): boolean {
  return ['good', 'busy'].includes(STATES[state].tone) && !tooOld && !tooStale
}

/** A list: its rows, how it is, and as of when; below it its notes. */
function jobLines(job: JobStatus, { now, daemon }: Status): string[] {
  const name = nameOf(job).padEnd(28)
  const rows = counted(job.rows, 'row').padStart(14)
  return [
    `${name}  ${rows}  ${job.state.padEnd(18)}  ${asOfText(job, now)}${daemon.running === true ? nextRunText(job, now) : ''}`,
    ...job.notes.map((text) => `    ${text}`),
  ]
}

/** As of when a list is in the mirror. */
export function asOfText(
  { as_of: asOf, fresh_as_of: freshAsOf, last_run_at }: JobStatus,
  now: string,
): string {
  if (asOf === null) return last_run_at === null ? 'never read' : 'never read whole'
  const ago = (time: string) => (time > now ? 'in the future' : `${agoText(time, now)} ago`)
  return freshAsOf !== null && freshAsOf > asOf
    ? `new rows as of ${ago(freshAsOf)}, all as of ${ago(asOf)}`
    : `as of ${ago(asOf)}`
}

/** `; next walk in 10 minutes`; nothing for a list that is being read, or that nothing is sent for. */
export function nextRunText({ next_run_at: at, running, state }: JobStatus, now: string): string {
  if (at === null || running || state === 'token refused') return ''
  return `; next walk in ${inWords(Date.parse(at) - Date.parse(now))}`
}
