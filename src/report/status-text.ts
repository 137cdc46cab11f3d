import type { QueueDepth } from '../store/postgres/read/status.ts'
import { counted, grouped, inWords, printable } from '../text.ts'
import type { JobStatus, Status } from './status.ts'
import { needsAttention } from './verdict.ts'

/**
 * How things are, what is wrong and why, the lists, and what to do next.
 * @param queryCommand `admin-mirror query`, with the option that names this mirror if there is no configuration.
 */
export function statusText(status: Status, queryCommand: string): string {
  const lines = [
    `mirror: ${status.database}`,
    daemonLine(status),
    ...(status.queue ? [`queue: ${queueText(status.queue)}`] : []),
    '',
    status.verdict,
    ...problemLines(status, status.jobs),
    '',
    ...listLines(status, queryCommand),
    ...(status.notes.length > 0 ? ['', ...status.notes.map((text) => `note: ${printable(text, 1000)}`)] : []),
    '',
    ...nextLines(status, queryCommand),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function daemonLine({ daemon, timezone, now, jobs }: Status): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${inWords(Date.parse(now) - Date.parse(since))})`
    if (running === true) return `runs ${ago}, process ${pid}`
    return running === null
      ? `process ${pid} began ${ago}; this user cannot see whether it still runs`
      : `process ${pid}, running ${ago}, died without being stopped`
  })
  if (told.length > 0) return `daemon: ${told.join('; ')}`
  if (timezone === null) return 'daemon: none is known to use this file'
  return jobs.some(({ running }) => running === true)
    ? 'daemon: none runs; a command is at work'
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

/** Of one cause so many lists are named. */
const MOST_NAMED = 4

/** What is wrong with these lists, each cause once: since when, and which lists it has. */
export function problemLines({ now }: Pick<Status, 'now'>, jobs: readonly JobStatus[]): string[] {
  const wrong = jobs.filter(({ problem }) => problem !== null)
  const causes = Map.groupBy(wrong, ({ state, problem }) => JSON.stringify([state, problem]))
  return Array.from(causes.values(), (lists) => {
    const names = lists.slice(0, MOST_NAMED).map(nameOf).join(', ')
    const more = lists.length > MOST_NAMED ? ` and ${counted(lists.length - MOST_NAMED, 'more list')}` : ''
    const [{ state, problem } = { state: '', problem: '' }] = lists
    const [since] = lists.flatMap((job) => job.problem_since ?? []).toSorted()
    const time =
      since === undefined ? '' : ` since ${since} (${inWords(Date.parse(now) - Date.parse(since))})`
    return `${names}${more}: ${state}${time}: ${problem}`
  })
}

/** What a monitor is told: the verdict, what is wrong with the lists that it counts, and what to do. */
export function alarmText(status: Status): string {
  const lines = problemLines(status, status.jobs.filter(needsAttention))
  const more = lines.length - MOST_TOLD
  return [
    status.verdict,
    ...lines.slice(0, MOST_TOLD),
    ...(more > 0 ? [`and ${counted(more, 'more cause')}`] : []),
    ...status.next.slice(0, MOST_TOLD).map((step) => `next: ${step}`),
  ].join('\n')
}

/** Causes that are told. */
const MOST_TOLD = 20

function nameOf({ organization, collection }: JobStatus): string {
  return `${printable(organization, 40)} ${printable(collection, 60)}`
}

const MOST_STEPS = 5

/** The next steps. That there is nothing to do is said only where `status --check` exits with 0. */
function nextLines({ next, jobs, check_exit_code: code }: Status, queryCommand: string): string[] {
  const isOld = jobs.some((job) => job.too_old || job.too_stale)
  const nothing =
    isOld || code !== 0 || jobs.some((job) => job.no_answer_since !== null)
      ? 'wait for the runs in progress'
      : `nothing to do; ask the mirror with ${queryCommand} "SELECT * FROM sync_status"`
  const [first = nothing, ...others] = next.slice(0, MOST_STEPS)
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
  const notable = jobs.filter((job) => isNotable(job))
  const beingRead = jobs.filter((job) => !isNotable(job) && job.running === true).slice(0, MOST_WHOLE)
  const shown = [...notable, ...beingRead]
  const others = jobs.length - shown.length
  if (others === 0) return lines(shown)
  const count = shown.length === 0 ? counted(others, 'list') : counted(others, 'more list')
  return [
    ...lines(shown),
    `${count}, read or being read as they should be: ${queryCommand} "SELECT * FROM sync_status"`,
  ]
}

/** Whether there is more to report of a list than that it is being read, or was read whole. */
function isNotable({
  state,
  next,
  too_old,
  too_stale,
  coverage,
  error_code: code,
  running,
}: JobStatus): boolean {
  const isUsual = state === 'read' || state === 'being read'
  return (
    !isUsual ||
    next !== null ||
    too_old ||
    too_stale ||
    (!running && (coverage === 'drifted' || code !== null))
  )
}

/** A list: its rows, how it is, as of when and how sure; below it its notes. */
function jobLines(job: JobStatus, { now, daemon }: Status): string[] {
  const next =
    job.next_run_at === null || job.running || job.held_since !== null || daemon.running !== true
      ? ''
      : `, next in ${inWords(Date.parse(job.next_run_at) - Date.parse(now))}`
  return [
    `${nameOf(job).padEnd(28)}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${job.state.padEnd(13)}  ${asOfText(job, now)}${next}`,
    ...job.notes.map((text) => `    ${text}`),
  ]
}

/** As of when a list is in the mirror, and how sure. */
export function asOfText(
  { as_of: asOf, fresh_as_of: freshAsOf, last_run_at, coverage }: JobStatus,
  now: string,
): string {
  if (asOf === null) return last_run_at === null ? 'never synced' : 'never read whole'
  const ago = (time: string) =>
    time > now ? 'in the future' : `${inWords(Date.parse(now) - Date.parse(time))} ago`
  const whole = `as of ${asOf} (${ago(asOf)})${coverage === null ? '' : `, ${coverage}`}`
  return freshAsOf !== null && freshAsOf > asOf ? `new rows as of ${ago(freshAsOf)}, whole ${whole}` : whole
}
