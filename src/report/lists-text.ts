import { counted, grouped, inWords } from '../text.ts'
import { conditionOf, jobLines } from './job-lines.ts'
import type { JobStatus } from './job-status.ts'
import { isWorthReporting } from './progress.ts'
import type { Status } from './status.ts'

/** More lists do not fit on a screen. */
const MOST_WHOLE = 50

/**
 * The lists. Of more than a screenful those come first that somebody has to look at, then those that are being read; the others
 * are summed up. `ask`: how to ask this mirror.
 */
export function listsText(status: Status, ask: string): string[] {
  const { jobs } = status
  const whole = (some: readonly JobStatus[]) => some.flatMap((job) => jobLines(job, status))
  if (jobs.length <= MOST_WHOLE) return whole(jobs)
  const { troubled = [], running = [], well = [] } = Object.groupBy(jobs, (job) => conditionOf(job, status))
  const areShown = running.length <= MOST_WHOLE
  const lines = [...whole(troubled), ...(areShown ? whole(running) : [])]
  const sums = [...(areShown ? [] : sumsOf(running, 'being read', status)), ...sumsOf(well, 'well', status)]
  if (sums.length === 0) return lines
  return [
    ...lines,
    ...(lines.length > 0 ? [''] : []),
    ...sums,
    `each of them: ${ask} "SELECT * FROM sync_status"`,
  ]
}

function sumsOf(jobs: readonly JobStatus[], are: string, { now }: Status): string[] {
  const byCollection = Map.groupBy(jobs, ({ collection }) => collection)
  const when = (time: string) => `${time} (${inWords(Date.parse(now) - Date.parse(time))} ago)`
  return [...byCollection].map(([collection, some]) => {
    const rows = some.reduce((sum, job) => sum + job.rows, 0)
    const missed = some.reduce((sum, job) => sum + job.rows_missed, 0)
    const uncertain = some.filter((job) => isWorthReporting(job.expected_missed)).length
    const parts = [
      `${counted(some.length, 'list')} of ${collection} ${some.length === 1 ? 'is' : 'are'} ${are}`,
    ]
    parts.push(counted(rows, 'row'))
    const oldest = earliest(some.flatMap(({ as_of: asOf }) => asOf ?? []))
    if (oldest !== null) parts.push(`the oldest as of ${when(oldest)}`)
    const fresh = earliest(some.flatMap((job) => (isRefreshed(job) ? (job.fresh_as_of ?? []) : [])))
    if (fresh !== null) parts.push(`new rows as of ${when(fresh)} at the oldest`)
    if (missed > 0) parts.push(`${grouped(missed)} of them did not come in the last reading`)
    if (uncertain > 0) parts.push(`walks of ${counted(uncertain, 'list')} miss items on average`)
    return [...parts, ...waitsOf(some, Date.parse(now))].join(', ')
  })
}

/** How many lists wait, and the longest of these waits. */
function waitsOf(jobs: readonly JobStatus[], now: number): string[] {
  const waits = jobs.flatMap(({ waiting_until: until, waiting_for: reason }) =>
    until === null ? [] : { until, reason },
  )
  if (waits.length === 0) return []
  const { until, reason } = waits.reduce((one, other) => (other.until > one.until ? other : one))
  const verb = waits.length === 1 ? 'waits' : 'wait'
  return [
    `${counted(waits.length, 'list')} ${verb}, until ${until} (${inWords(Date.parse(until) - now)}) at the latest: ${reason}`,
  ]
}

function isRefreshed({ refreshed_every_ms: often, as_of: asOf, fresh_as_of: freshAsOf }: JobStatus): boolean {
  return often !== null || freshAsOf !== asOf
}

function earliest(times: readonly string[]): string | null {
  return times.reduce<string | null>((one, other) => (one === null || other < one ? other : one), null)
}
