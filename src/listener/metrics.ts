import { Counter, Gauge, Registry } from 'prom-client'
import type { JobStatus } from '../report/status.ts'
import type { RunsShown } from '../store/core/overview.ts'
import { jobKey, printable } from '../text.ts'
import type { Health, Overview } from './overview.ts'

const JOB = ['organization', 'collection'] as const

/** What Prometheus scrapes. A value that is not known has no line: no time of 1970, no age of NaN. */
export async function metricsText(overview: Overview, health: Health): Promise<string> {
  const registry = new Registry()
  const gauge = gaugesIn(registry)
  healthMetrics(health, gauge)
  processMetrics(overview, gauge)
  jobMetrics(overview, gauge)
  return (await Promise.all([registry.metrics(), overview.counters.text()])).join('')
}

/** The metrics that are left while the mirror cannot be read. */
export function healthMetricsText(health: Health): Promise<string> {
  const registry = new Registry()
  healthMetrics(health, gaugesIn(registry))
  return registry.metrics()
}

function gaugesIn(registry: Registry): MakeGauge {
  return (name, help, labelNames) =>
    new Gauge({
      name: `admin_mirror_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
    })
}

function healthMetrics({ stalled, unusable }: Health, gauge: MakeGauge) {
  gauge('scheduler_ticking', '1 while the scheduler wakes when it should, else 0.', []).set(
    Number(stalled === null),
  )
  gauge('usable', '1 while the mirror can be used, else 0.', []).set(Number(unusable === null))
}

type MakeGauge = <Label extends string>(name: string, help: string, labels: readonly Label[]) => Gauge<Label>

function processMetrics({ version, started_at, size, published, status }: Overview, gauge: MakeGauge) {
  // Without labels, prom-client would show a gauge that is never set as 0.
  const single = (name: string, help: string, value: number | null) => {
    if (value !== null) gauge(name, help, []).set(value)
  }
  gauge('info', 'Version of admin-mirror.', ['version']).set({ version }, 1)
  single('start_time_seconds', 'When this process began.', seconds(started_at))
  single('check_exit_code', 'What "status --check" exits with: 0 if all is well.', status.check_exit_code)
  queueMetrics(status, single)
  single('database_bytes', 'Size of the mirror, without its WAL.', size.bytes)
  single(
    'wal_bytes',
    'Size of the WAL beside the mirror; it grows while a reader holds a transaction open.',
    size.walBytes,
  )
  single('disk_free_bytes', 'Room on the disk of the mirror for this user.', size.freeBytes)
  single(
    'published_timestamp_seconds',
    'When the published file was made.',
    seconds(published?.created_at ?? null),
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

/** A gauge of each list, and its value; null: not known. */
type JobGauge = readonly [
  name: string,
  help: string,
  read: (job: JobStatus, run: RunsShown | undefined) => number | null,
]

const JOB_GAUGES: readonly JobGauge[] = [
  ['rows', 'Live rows of the list.', (job) => job.rows],
  [
    'last_success_timestamp_seconds',
    'End of the last complete full walk.',
    (job) => seconds(job.last_complete_at),
  ],
  [
    'as_of_timestamp_seconds',
    'Start of the last complete full walk: the list is as of then.',
    (job) => seconds(job.as_of),
  ],
  [
    'fresh_as_of_timestamp_seconds',
    'What was added at the newest end before then is in.',
    (job) => seconds(job.fresh_as_of),
  ],
  ['last_run_timestamp_seconds', 'Start of the last run.', (job) => seconds(job.last_run_at)],
  ['last_run_seconds', 'How long the last walk that ended took.', (_job, run) => run?.seconds ?? null],
  [
    'last_refresh_seconds',
    'How long the last refresh that ended took.',
    (_job, run) => run?.refresh_seconds ?? null,
  ],
  ['next_run_timestamp_seconds', 'The next time of the schedule.', (job) => seconds(job.next_run_at)],
  ['overdue', '1 if the list should have been read by now, by its schedule.', (job) => flag(job.overdue)],
  ['running', '1 while a process works on the list.', (job) => flag(job.running)],
  [
    'walk_progress_ratio',
    'How far the open walk is, from 0 to 1.',
    (job) => (job.walk_percent === null ? null : job.walk_percent / 100),
  ],
  [
    'waiting_until_timestamp_seconds',
    'Until when the list waits for its rate limit.',
    (job) => seconds(job.waiting_until),
  ],
  ['removals_held_rows', 'Rows whose removal the brake holds back.', (job) => job.removals_held],
  [
    'rows_missed',
    'Rows that the last walk did not see and the next one may remove.',
    (job) => job.rows_missed,
  ],
]

function jobMetrics({ status: { jobs }, runs }: Overview, gauge: MakeGauge) {
  for (const [name, help, read] of JOB_GAUGES) {
    const values = gauge(name, help, JOB)
    for (const job of jobs) {
      const value = read(job, runs.get(jobKey(job.organization_id, job.collection)))
      if (value !== null) values.set(labelsOf(job), value)
    }
  }
  const failed = gauge(
    'last_run_failed',
    '1 from the end of a run that failed until one succeeds, with its error code.',
    [...JOB, 'error_code'],
  )
  const coverage = gauge('coverage', '1 for what the last complete full walk says of itself.', [
    ...JOB,
    'coverage',
  ])
  const tokenHeld = gauge(
    'token_held',
    '1 while nothing is sent for the organization, since its token was refused.',
    ['organization'],
  )
  for (const job of jobs) {
    const labels = labelsOf(job)
    failed.set(
      { ...labels, error_code: job.failing_code ?? job.error_code ?? '' },
      job.failing_since === null ? 0 : 1,
    )
    if (job.coverage !== null) coverage.set({ ...labels, coverage: job.coverage }, 1)
    tokenHeld.set({ organization: labels.organization }, job.held_since === null ? 0 : 1)
  }
}

export type Counters = ReturnType<typeof createCounters>

type ListName = Pick<JobStatus, 'organization' | 'collection'>

interface RunSums {
  retries: number
  rateLimitWaitMs: number
}

/** What this process did since its start. */
export function createCounters() {
  const registry = new Registry()
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `admin_mirror_${name}`, help, labelNames, registers })
  const requests = counter(
    'requests_total',
    'Requests that this process sent, by the status of the answer ("error": none came).',
    ['organization', 'status'],
  )
  const runs = counter('runs_total', 'Runs of this process that ended, by their end.', [...JOB, 'status'])
  const retries = counter('retries_total', 'Requests of these runs that were sent once more.', [...JOB])
  const waited = counter('rate_limit_wait_seconds_total', 'Time that these runs waited for the rate limit.', [
    ...JOB,
  ])
  return {
    /** A request that has ended. `status`: null where no answer came. */
    request: (organization: string, status: number | null): void =>
      requests.inc({ organization: printable(organization), status: String(status ?? 'error') }),
    /** A run that has ended, or was refused before it began. */
    run(list: ListName, end: 'succeeded' | 'failed' | 'interrupted' | 'refused', run: RunSums | null): void {
      const labels = labelsOf(list)
      runs.inc({ ...labels, status: end })
      retries.inc(labels, run?.retries ?? 0)
      waited.inc(labels, (run?.rateLimitWaitMs ?? 0) / 1000)
    },
    text: (): Promise<string> => registry.metrics(),
  }
}

/** Names as people see them everywhere: what would reorder a line is escaped. */
function labelsOf({ organization, collection }: ListName) {
  return { organization: printable(organization), collection: printable(collection) }
}

function flag(known: boolean | null): number | null {
  return known === null ? null : known ? 1 : 0
}

function seconds(time: string | null): number | null {
  return time === null ? null : Date.parse(time) / 1000
}
