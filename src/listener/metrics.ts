import { Counter, Gauge, Registry } from 'prom-client'
import type { JobStatus, Status } from '../report/status.ts'
import { printable } from '../text.ts'
import type { Health } from './server.ts'

/** What Prometheus scrapes. A value that is not known has no line: no time of 1970, no age of NaN. */
export async function metricsText(status: Status, health: Health, counters: Counters): Promise<string> {
  const registry = new Registry()
  addHealth(registry, health)
  const gauge = gaugesIn(registry)
  gauge('info', 'Version of admin-mirror.', ['version']).set({ version: status.program_version }, 1)
  gauge('check_exit_code', 'What "status --check" exits with: 0 if all is well.').set(status.check_exit_code)
  const held = gauge(
    'token_held',
    '1 while nothing is sent for the organization, since its token was refused.',
    ['organization'],
  )
  const failed = gauge(
    'last_run_failed',
    '1 from the end of a run that failed until one succeeds, with its error code.',
    [...LIST, 'error_code'],
  )
  for (const [name, help, read] of LIST_GAUGES) {
    const values = gauge(name, help, LIST)
    for (const job of status.jobs) {
      const value = read(job)
      if (value !== null) values.set(labelsOf(job), value)
    }
  }
  for (const job of status.jobs) {
    const labels = labelsOf(job)
    held.set({ organization: labels.organization }, job.held_since === null ? 0 : 1)
    const code = job.failing_since === null ? '' : (job.problem?.code ?? job.error_code ?? '')
    failed.set({ ...labels, error_code: code }, job.failing_since === null ? 0 : 1)
  }
  return (await Promise.all([registry.metrics(), counters.text()])).join('')
}

/** The metrics that are left while the mirror cannot be read. */
export function healthMetrics(health: Health): Promise<string> {
  const registry = new Registry()
  addHealth(registry, health)
  return registry.metrics()
}

function addHealth(registry: Registry, { stalled, unusable }: Health): void {
  const gauge = gaugesIn(registry)
  gauge('scheduler_ticking', '1 while the scheduler wakes when it should, else 0.').set(
    Number(stalled === null),
  )
  gauge('usable', '1 while the mirror can be used, else 0.').set(Number(unusable === null))
}

function gaugesIn(registry: Registry) {
  return <Label extends string>(name: string, help: string, labels: readonly Label[] = []) =>
    new Gauge({ name: `admin_mirror_${name}`, help, labelNames: [...labels], registers: [registry] })
}

const LIST = ['organization', 'collection'] as const

/** A gauge of each list, and its value; null: not known. */
const LIST_GAUGES: readonly [name: string, help: string, read: (job: JobStatus) => number | null][] = [
  ['rows', 'Live rows of the list.', (job) => job.rows],
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
  [
    'overdue',
    '1 if the list should have been read by now, by its schedule.',
    (job) => (job.overdue === null ? null : Number(job.overdue)),
  ],
  ['removals_held_rows', 'Rows whose removal the brake holds back.', (job) => job.removals_held],
]

function seconds(time: string | null): number | null {
  return time === null ? null : Date.parse(time) / 1000
}

/** Names as people see them everywhere: what would reorder a line is escaped. */
function labelsOf({ organization, collection }: Pick<JobStatus, 'organization' | 'collection'>) {
  return { organization: printable(organization), collection: printable(collection) }
}

export type Counters = ReturnType<typeof createCounters>

/** What this process did since its start. */
export function createCounters() {
  const registry = new Registry()
  const requests = new Counter({
    name: 'admin_mirror_requests_total',
    help: 'Requests that this process sent, by the status of the answer ("error": none came).',
    labelNames: ['organization', 'status'],
    registers: [registry],
  })
  return {
    /** A request that has ended. `status`: null where no answer came. */
    request: (organization: string, status: number | null): void =>
      requests.inc({ organization: printable(organization), status: String(status ?? 'error') }),
    text: (): Promise<string> => registry.metrics(),
  }
}
