import { grouped, inWords, printable } from '../text.ts'
import type { JobStatus } from './job-status.ts'
import { isStopped } from './next-step.ts'

/** What is done without a run of a walk, or before it begins. */
const WORDS: Readonly<Partial<Record<NonNullable<JobStatus['work']>, string>>> = {
  verify: 'being compared (verify)',
  refresh: 'being refreshed',
}

/** One note for each open walk of a job: how far it is, and what continues it; and one for what is asked for again. `now`: epoch milliseconds. */
export function progressNotes(job: JobStatus, now: number): string[] {
  const isBegun = job.last_run_status === 'running' && job.running !== false && job.work !== 'verify'
  const ofBackfill = isBegun && job.last_run_trigger === 'backfill'
  const ofSync = isBegun && !ofBackfill
  const notes: string[] = []
  if (job.running && !isBegun) notes.push(`running: ${WORDS[job.work ?? 'manual'] ?? 'about to begin'}`)
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

/** What no page comes for: when it is asked for next, since when it fails, and how. */
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

/** Fewer missed items are not reported. */
const WORTH_REPORTING = 0.01

/** @param expectedMissed The items that a walk misses on average. */
export function isWorthReporting(expectedMissed: number | null): expectedMissed is number {
  return expectedMissed !== null && expectedMissed > WORTH_REPORTING
}

/** The missed items as a text to follow the coverage of a walk; empty if they are not worth reporting. */
export function missedText(expectedMissed: number | null): string {
  if (!isWorthReporting(expectedMissed)) return ''
  return ` (such a walk misses ${Number(expectedMissed.toPrecision(2))} items on average)`
}
