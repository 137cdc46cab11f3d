import { counted, inWords, printable } from '../text.ts'
import type { NextStep } from './next-step.ts'
import type { JobStatus, Status } from './status.ts'
import { gravestFirst, needsAttention } from './verdict.ts'

/** So many lists with one cause are named. */
const MOST_LISTS = 4

/**
 * How things are, what is wrong and why, the lists, and what to do next.
 * @param queryCommand `admin-mirror query`, with the option that names this mirror if there is no configuration.
 */
export function statusText(status: Status, queryCommand: string): string {
  const { jobs, next, notes, database } = status
  const [
    first = `nothing to do; ask the mirror with ${queryCommand} "SELECT * FROM sync_status"`,
    ...others
  ] = next.map(stepText)
  const lines = [
    status.verdict,
    ...problemLines(status, jobs),
    '',
    ...jobs.flatMap((job) => jobLines(job, status)),
    ...notes.map((text) => `note: ${printable(text, 1000)}`),
    '',
    `mirror: ${database}`,
    `daemon: ${daemonText(status)}`,
    `next: ${first}`,
    ...others.map((step) => `      ${step}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

export function stepText({ say, command }: NextStep): string {
  return [say, command].filter((part) => part !== null).join(': ')
}

/** Which `start` works on the mirror. */
export function daemonText({ daemon, config, now }: Status): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${ageText(since, now)})`
    return running
      ? `runs ${ago}, process ${pid}`
      : `process ${pid}, running ${ago}, died without being stopped`
  })
  if (told.length > 0) return told.join('; ')
  if (config === null) return 'none is known to use this file'
  if (daemon.running === null) return 'not known: while nothing can be written, none can say that it runs'
  return 'none runs; start it by its service or admin-mirror start'
}

function ageText(time: string, now: string): string {
  return inWords(Date.parse(now) - Date.parse(time))
}

/** What is wrong with these lists, each cause once: which lists have it, and since when. */
export function problemLines(
  { now }: Pick<Status, 'now'>,
  jobs: readonly JobStatus[],
  words: 'text' | 'meaning' = 'text',
): string[] {
  const wrong = gravestFirst(jobs).flatMap((job) =>
    job.problem === null ? [] : [{ job, since: job.problem.since, text: job.problem[words] }],
  )
  const causes = Map.groupBy(wrong, ({ job, text }) => `${job.state}: ${text}`)
  return Array.from(causes.values(), (lists) => {
    const names = lists.slice(0, MOST_LISTS).map(({ job }) => nameOf(job))
    if (lists.length > MOST_LISTS) names.push(`... and ${counted(lists.length - MOST_LISTS, 'more list')}`)
    const [since] = lists.flatMap(({ since: one }) => one ?? []).toSorted()
    const time = since === undefined ? '' : ` since ${since} (${ageText(since, now)})`
    return `${names.join(', ')}: ${lists[0]?.job.state}${time}: ${lists[0]?.text}`
  })
}

/**
 * What monitors are told, by `/check` and pings: the verdict, what is wrong with the lists that it counts, and what to do. Others see it, so
 * what a server said is left out, since it may hold an item's data.
 */
export function alarmText(status: Status): string {
  const lines = problemLines(status, status.jobs.filter(needsAttention), 'meaning')
  return [status.verdict, ...lines, ...status.next.map((step) => `next: ${stepText(step)}`)].join('\n')
}

function nameOf({ organization, collection }: JobStatus): string {
  return `${printable(organization, 40)} ${printable(collection, 60)}`
}

/** A list: its rows, how it is, and as of when; below it its notes. */
function jobLines(job: JobStatus, { now, daemon }: Status): string[] {
  const rows = counted(job.rows, 'row').padStart(14)
  const next = daemon.running === true ? nextRunText(job, now) : ''
  return [
    `${nameOf(job).padEnd(28)}  ${rows}  ${job.state.padEnd(18)}  ${asOfText(job, now)}${next}`,
    ...job.notes.map((text) => `    ${text}`),
  ]
}

/** As of when a list is in the mirror. */
export function asOfText(
  { as_of: asOf, fresh_as_of: freshAsOf, last_run_at }: JobStatus,
  now: string,
): string {
  if (asOf === null) return last_run_at === null ? 'never read' : 'never read whole'
  const ago = (time: string) => (time > now ? 'in the future' : `${ageText(time, now)} ago`)
  return freshAsOf !== null && freshAsOf > asOf
    ? `new rows as of ${ago(freshAsOf)}, all as of ${ago(asOf)}`
    : `as of ${ago(asOf)}`
}

/** `; next walk in 10 minutes`; nothing for a list that is being read, or that nothing is sent for. */
export function nextRunText({ next_run_at: at, running, state }: JobStatus, now: string): string {
  if (at === null || running || state === 'token refused') return ''
  return `; next walk in ${inWords(Date.parse(at) - Date.parse(now))}`
}
