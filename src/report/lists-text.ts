import { counted, grouped, inWords } from '../text.ts'
import { conditionOf, jobLines } from './job-lines.ts'
import type { JobStatus } from './job-status.ts'
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
  return [...byCollection].map(([collection, some]) => {
    const rows = some.reduce((sum, job) => sum + job.rows, 0)
    const missed = some.reduce((sum, job) => sum + job.rows_missed, 0)
    const parts = [
      `${counted(some.length, 'list')} of ${collection} ${some.length === 1 ? 'is' : 'are'} ${are}`,
    ]
    parts.push(counted(rows, 'row'))
    const oldest = oldestOf(some)
    if (oldest !== null)
      parts.push(`the oldest as of ${oldest} (${inWords(Date.parse(now) - Date.parse(oldest))} ago)`)
    if (missed > 0) parts.push(`${grouped(missed)} of them did not come in the last reading`)
    return parts.join(', ')
  })
}

function oldestOf(jobs: readonly JobStatus[]): string | null {
  const times = jobs.flatMap(({ as_of: asOf }) => asOf ?? [])
  return times.reduce<string | null>((one, other) => (one === null || other < one ? other : one), null)
}
