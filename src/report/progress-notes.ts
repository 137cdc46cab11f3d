import { grouped } from '../text.ts'
import { isStopped } from './next-step.ts'
import type { JobStatus } from './status.ts'

/** How far the walks of a job have come, and who goes on with those that stand still. */
export function progressNotes(job: JobStatus): string[] {
  const isBegun = job.last_run_status === 'running' && job.running !== false
  const ofBackfill = isBegun && job.last_run_trigger === 'backfill'
  const ofSync = isBegun && !ofBackfill
  const notes: string[] = []
  if (job.running && !isBegun) notes.push('running: being compared (verify), or no page has come yet')
  if (ofSync) notes.push(begun(job, walkText(job), job.walk_updated_at))
  else if (isStopped(job) && job.error_code === null)
    notes.push(`interrupted: the run of ${job.last_run_at} ended without a word`)
  if (!ofSync && job.walk_origin === 'sync') {
    const then = job.configured ? '; the next run goes on there' : ''
    notes.push(`stopped at ${walkText(job)}${then}`)
  }
  for (const walk of job.backfills) {
    const where = placeText(walk.page, walk.rows_seen, walk.total)
    if (ofBackfill && walk.is_last_run) notes.push(begun(job, `a backfill at ${where}`, walk.updated_at))
    else notes.push(`a backfill stopped at ${where}; to go on with it: ${walk.next}`)
  }
  return notes
}

function begun(job: JobStatus, where: string, updatedAt: string | null): string {
  if (job.running) return `running since ${job.last_run_at}: ${where}`
  return `began ${job.last_run_at}, last page written ${updatedAt ?? job.last_run_at}: ${where}; this user cannot see whether it still runs`
}

function walkText({ walk_page: page, walk_rows_seen: seen, walk_total: total }: JobStatus): string {
  return placeText(page, seen, total)
}

function placeText(page: number | null, seen: number | null, total: number | null): string {
  const items =
    seen === null ? '' : `, ${grouped(seen)}${total === null ? '' : ` of ${grouped(total)}`} items seen`
  return `page ${page === null ? 'one past the last' : grouped(page)}${items}`
}
