import { Counter, Gauge, Registry } from 'prom-client'
import type { JobStatus } from '../report/job-status.ts'
import { printable } from '../text.ts'
import { type Health, jobKey, type Overview } from './overview.ts'

const JOB = ['organization', 'collection'] as const

/** What Prometheus scrapes. A value that is not known has no line: no time of 1970, no age of NaN. */
export function metricsText(overview: Overview, health: Health): Promise<string> {
  const registry = new Registry()
  const registers = [registry]
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Gauge({ name: `admin_mirror_${name}`, help, labelNames: [...labelNames], registers })
  processMetrics(overview, health, gauge)
  jobMetrics(overview, gauge)
  countersOf(overview, registry)
  return registry.metrics()
}

type MakeGauge = <Label extends string>(name: string, help: string, labels: readonly Label[]) => Gauge<Label>

function processMetrics(
  { version, started_at, size, published, status }: Overview,
  health: Health,
  gauge: MakeGauge,
) {
  // Without labels, prom-client would show a gauge that is never set as 0.
  const single = (name: string, help: string, value: number | null) => {
    if (value !== null) gauge(name, help, []).set(value)
  }
  gauge('info', 'Version of admin-mirror.', ['version']).set({ version }, 1)
  single('start_time_seconds', 'When this process began.', seconds(started_at))
  single(
    'scheduler_ticking',
    '1 while the scheduler wakes when it should, else 0.',
    flag(health.stalled === null),
  )
  single('usable', '1 while the mirror can be used, else 0.', flag(health.unusable === null))
  single('check_exit_code', 'What "status --check" exits with: 0 if all is well.', status.check_exit_code)
  queueMetrics(status, single)
  single('database_bytes', 'Size of the mirror, without its WAL.', size.bytes)
  single(
    'wal_bytes',
    'Size of the WAL beside the mirror; it grows while a reader holds a transaction open.',
    size.walBytes,
  )
  single('disk_free_bytes', 'Room on the disk of the mirror for this user.', size.freeBytes)
  const made = published?.created_at ?? null
  single(
    'published_timestamp_seconds',
    'When the published file was made.',
    made === null ? null : seconds(made),
  )
  single('published_bytes', 'Size of the published file.', published?.bytes ?? null)
}

function queueMetrics(
  { queue }: Overview['status'],
  single: (name: string, help: string, value: number | null) => void,
) {
  if (!queue) return
  single('queue_waiting', 'Lists that no worker has taken yet.', queue.waiting)
  single('queue_oldest_seconds', 'How long the first of them has waited.', (queue.oldest_ms ?? 0) / 1000)
  single('queue_running', 'Lists that workers have taken.', queue.running)
  single('queue_failed', 'Runs of the last hour that failed, of all workers.', queue.failed)
}

function jobMetrics({ status, runs }: Overview, gauge: MakeGauge) {
  const rows = gauge('rows', 'Live rows of the list.', JOB)
  const lastSuccess = gauge('last_success_timestamp_seconds', 'End of the last complete full walk.', JOB)
  const asOf = gauge(
    'as_of_timestamp_seconds',
    'Start of the last complete full walk: the list is as of then.',
    JOB,
  )
  const freshAsOf = gauge(
    'fresh_as_of_timestamp_seconds',
    'What was added at the newest end before then is in.',
    JOB,
  )
  const lastRun = gauge('last_run_timestamp_seconds', 'Start of the last run.', JOB)
  const lastRunSeconds = gauge('last_run_seconds', 'How long the last run that ended took.', JOB)
  const nextRun = gauge('next_run_timestamp_seconds', 'The next time of the schedule.', JOB)
  const failed = gauge('last_run_failed', '1 if the last run failed, with its error code.', [
    ...JOB,
    'error_code',
  ])
  const overdue = gauge('overdue', '1 if the list should have been read by now, by its schedule.', JOB)
  const running = gauge('running', '1 while a process works on the list.', JOB)
  const progress = gauge('walk_progress_ratio', 'How far the open walk is, from 0 to 1.', JOB)
  const waiting = gauge(
    'waiting_until_timestamp_seconds',
    'Until when the list waits for its rate limit.',
    JOB,
  )
  const coverage = gauge('coverage', '1 for what the last complete full walk says of itself.', [
    ...JOB,
    'coverage',
  ])
  const missed = gauge(
    'expected_missed_items',
    'How many items a walk like the last one misses on average.',
    JOB,
  )
  const held = gauge('removals_held_rows', 'Rows whose removal the brake holds back.', JOB)
  const missing = gauge(
    'rows_missed',
    'Rows that the last walk did not see and the next one may remove.',
    JOB,
  )
  const tokenHeld = gauge(
    'token_held',
    '1 while nothing is sent for the organization, since its token was refused.',
    ['organization'],
  )
  for (const job of status.jobs) {
    const labels = labelsOf(job)
    rows.set(labels, job.rows)
    setTime(lastSuccess, labels, job.last_complete_at)
    setTime(asOf, labels, job.as_of)
    setTime(freshAsOf, labels, job.fresh_as_of)
    setTime(lastRun, labels, job.last_run_at)
    setKnown(lastRunSeconds, labels, runs.get(jobKey(job))?.seconds ?? null)
    setTime(nextRun, labels, job.next_run_at)
    failed.set({ ...labels, error_code: job.error_code ?? '' }, job.last_run_status === 'failed' ? 1 : 0)
    setKnown(overdue, labels, flag(job.overdue))
    setKnown(running, labels, flag(job.running))
    setKnown(progress, labels, job.walk_percent === null ? null : job.walk_percent / 100)
    setTime(waiting, labels, job.waiting_until)
    if (job.coverage !== null) coverage.set({ ...labels, coverage: job.coverage }, 1)
    setKnown(missed, labels, job.expected_missed)
    held.set(labels, job.removals_held)
    missing.set(labels, job.rows_missed)
    tokenHeld.set({ organization: labels.organization }, job.held_since === null ? 0 : 1)
  }
}

function countersOf({ counters }: Overview, registry: Registry) {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `admin_mirror_${name}`, help, labelNames, registers })
  const requests = counter(
    'requests_total',
    'Requests that this process sent, by the status of the answer ("error": none came).',
    ['organization', 'status'],
  )
  for (const { organization, status, count } of counters.requests)
    requests.inc({ organization: printable(organization), status }, count)
  const runs = counter('runs_total', 'Runs of this process that ended, by their end.', [...JOB, 'status'])
  const retries = counter('retries_total', 'Requests of these runs that were sent once more.', [...JOB])
  const waited = counter('rate_limit_wait_seconds_total', 'Time that these runs waited for the rate limit.', [
    ...JOB,
  ])
  for (const { status, count, retries: again, wait_seconds: wait, ...job } of counters.runs) {
    const labels = labelsOf(job)
    runs.inc({ ...labels, status }, count)
    retries.inc(labels, again)
    waited.inc(labels, wait)
  }
}

/** Names as people see them everywhere: what would reorder a line is escaped. */
function labelsOf({ organization, collection }: Pick<JobStatus, 'organization' | 'collection'>) {
  return { organization: printable(organization), collection: printable(collection) }
}

function setTime<Label extends string>(
  gauge: Gauge<Label>,
  labels: Record<Label, string>,
  time: string | null,
) {
  if (time !== null) gauge.set(labels, seconds(time))
}

function setKnown<Label extends string>(
  gauge: Gauge<Label>,
  labels: Record<Label, string>,
  value: number | null,
) {
  if (value !== null) gauge.set(labels, value)
}

function flag(known: boolean | null): number | null {
  return known === null ? null : known ? 1 : 0
}

function seconds(time: string): number {
  return Date.parse(time) / 1000
}
