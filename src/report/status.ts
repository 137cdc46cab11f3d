import type { StatusRow } from '../mirror/reader.ts'
import { grouped, inWords, printable } from '../text.ts'

/** A job as `status --json` gives it. Times are ISO 8601; fields may be added, never changed. */
export interface JobStatus extends Omit<StatusRow, 'configured'> {
  configured: boolean
  /** Milliseconds since `as_of`. */
  age_ms: number | null
  /** What somebody should type, or do, next; null when all is well. */
  next: string | null
}

export interface Status {
  database: string
  now: string
  /** The rate limit's pause, while one lasts. */
  waiting_until: string | null
  jobs: JobStatus[]
}

/** A job of the configuration that the mirror knows nothing of yet. */
export function neverSynced(organization: { id: string; name: string }, collection: string): StatusRow {
  return {
    organization_id: organization.id,
    organization: organization.name,
    collection,
    configured: 1,
    rows: 0,
    as_of: null,
    last_complete_at: null,
    coverage: null,
    last_run_at: null,
    last_run_status: null,
    error_code: null,
    error_message: null,
    removals_held: 0,
    held_since: null,
    held_reason: null,
    walk_page: null,
    walk_pages: null,
    walk_rows_seen: null,
    walk_total: null,
    walk_started_at: null,
    walk_updated_at: null,
  }
}

export function jobStatus(row: StatusRow, now: number): JobStatus {
  const age = row.as_of === null ? null : now - Date.parse(row.as_of)
  return { ...row, configured: row.configured === 1, age_ms: age, next: nextStep(row) }
}

function nextStep(row: StatusRow): string | null {
  const org = row.organization
  if (row.held_since)
    return `give ${org} a new token, or if it is valid again: admin-mirror resume --org ${org}`
  if (row.configured === 0) return null
  if (row.last_run_at === null) return `admin-mirror sync --org ${org}`
  if (row.last_run_status === 'running') return null
  if (row.last_run_status === 'interrupted')
    return `admin-mirror sync --org ${org} (goes on at page ${row.walk_page ?? 1})`
  if (row.last_run_status === 'failed')
    return `look at the error, then: admin-mirror sync --org ${org} --collection ${row.collection}`
  return null
}

/** One line a job: which list, its rows, as of when and how sure. Below it whatever needs somebody's attention. */
export function statusText(status: Status): string {
  const now = Date.parse(status.now)
  const lines = [`mirror: ${status.database}`, summary(status.jobs), '']
  for (const job of status.jobs) lines.push(...jobLines(job, now))
  if (status.waiting_until !== null)
    lines.push('', `the rate limit asks for a pause until ${status.waiting_until}`)
  const next = status.jobs.find((job) => job.next !== null)?.next
  lines.push(
    '',
    `next: ${next ?? 'nothing to do; ask the mirror with admin-mirror query "SELECT * FROM sync_status"'}`,
  )
  return lines.map((line) => `${line}\n`).join('')
}

function summary(jobs: readonly JobStatus[]): string {
  const attention = jobs.filter((job) => job.next !== null).length
  return attention === 0
    ? `all ${jobs.length} lists are well`
    : `${attention} of ${jobs.length} lists need attention`
}

function jobLines(job: JobStatus, now: number): string[] {
  const name = `${printable(job.organization, 40)} ${job.collection}`.padEnd(28)
  const lines = [`${name}  ${`${grouped(job.rows)} rows`.padStart(14)}  ${freshness(job)}`]
  const note = (text: string) => lines.push(`    ${text}`)
  if (!job.configured) note('no longer in the configuration; its rows stay')
  if (job.held_since) note(`held since ${job.held_since}: ${printable(job.held_reason ?? '')}`)
  if (job.last_run_status === 'running') note(`running since ${job.last_run_at}: ${walkText(job)}`)
  else if (job.walk_page !== null) note(`stopped at ${walkText(job)}; the next run goes on there`)
  if (job.error_code && job.last_run_at) {
    note(
      `last run ${inWords(now - Date.parse(job.last_run_at))} ago: ${job.error_code}: ${printable(job.error_message ?? '', 500)}`,
    )
  }
  if (job.removals_held > 0)
    note(`${grouped(job.removals_held)} rows wait to be removed: admin-mirror sync --accept-removals`)
  return lines
}

function freshness({ as_of: asOf, age_ms: age, coverage, last_run_at: lastRun }: JobStatus): string {
  if (asOf === null || age === null) return lastRun === null ? 'never synced' : 'never read whole'
  return `as of ${asOf} (${inWords(age)} ago)${coverage ? `, ${coverage}` : ''}`
}

function walkText({ walk_page: page, walk_rows_seen: seen, walk_total: total }: JobStatus): string {
  const items =
    seen === null ? '' : `, ${grouped(seen)}${total === null ? '' : ` of ${grouped(total)}`} items seen`
  return `page ${page === null ? 'one past the last' : grouped(page)}${items}`
}
