import { Counter, Gauge, Registry } from 'prom-client'
import type { JobStatus, Status } from '../report/status.ts'
import { printable } from '../text.ts'
import type { Health } from './server.ts'

const LIST = ['organization', 'collection'] as const

/** What Prometheus scrapes. A value that is not known has no line: no time of 1970. `status`: null while the mirror cannot be read. */
export async function metricsText(
  status: Status | null,
  { stalled, unusable }: Health,
  counters: Counters,
): Promise<string> {
  const registry = new Registry()
  const gauge = <Label extends string>(name: string, help: string, labels: readonly Label[] = []) =>
    new Gauge({ name: `admin_mirror_${name}`, help, labelNames: [...labels], registers: [registry] })
  const ofLists = (name: string, help: string, read: (job: JobStatus) => number | null) => {
    const values = gauge(name, help, LIST)
    for (const job of status?.jobs ?? []) {
      const value = read(job)
      if (value !== null) values.set(labelsOf(job), value)
    }
  }

  gauge('scheduler_ticking', '1 while the scheduler wakes when it should, else 0.').set(
    Number(stalled === null),
  )
  gauge('usable', '1 while the mirror can be used, else 0.').set(Number(unusable === null))
  const text = async () => `${await registry.metrics()}${await counters.text()}`
  if (status === null) return text()
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
  for (const job of status.jobs) {
    const names = labelsOf(job)
    const isFailing = job.failing_since !== null
    held.set({ organization: names.organization }, Number(job.held_since !== null))
    failed.set({ ...names, error_code: job.failing_code ?? '' }, Number(isFailing))
  }
  ofLists('rows', 'Live rows of the list.', (job) => job.rows)
  ofLists(
    'as_of_timestamp_seconds',
    'Start of the last complete full walk: the list is as of then.',
    ({ as_of }) => secondsOf(as_of),
  )
  ofLists(
    'fresh_as_of_timestamp_seconds',
    'What was added at the newest end before then is in.',
    ({ fresh_as_of }) => secondsOf(fresh_as_of),
  )
  ofLists('overdue', '1 if the list should have been read by now, by its schedule.', ({ overdue }) =>
    overdue === null ? null : Number(overdue),
  )
  ofLists('removals_held_rows', 'Rows whose removal the brake holds back.', (job) => job.removals_held)
  return text()
}

function secondsOf(time: string | null): number | null {
  return time === null ? null : Date.parse(time) / 1000
}

/** Names as people see them everywhere: what would reorder a line is escaped. */
function labelsOf({ organization, collection }: JobStatus) {
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
