import { createCounters } from '../../src/listener/metrics.ts'
import type { Overview, StatusSource } from '../../src/listener/overview.ts'
import { createStatus, type JobStatus, jobStatus } from '../../src/report/status.ts'
import { neverSynced, type StatusRow } from '../../src/store/core/status.ts'
import { jobKey } from '../../src/text.ts'

export const NOW = Date.parse('2026-11-20T12:00:00.000Z')

export function at(minutesAgo: number): string {
  return new Date(NOW - minutesAgo * 60_000).toISOString()
}

function uuid(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}

/** What the mirror keeps of a list whose last run failed. */
export function failedBy(code = 'NETWORK', message = 'away') {
  return { failing_since: at(30), failing_by: 'walk', failing_code: code, failing_message: message } as const
}

/** A list that was read five minutes ago, unless `more` says otherwise. */
export function job(organization: string, collection = 'orders', more: Partial<JobStatus> = {}): JobStatus {
  const row: StatusRow = {
    ...neverSynced({ id: uuid(organization.length), name: organization }, collection),
    rows: 1500,
    as_of: at(5),
    last_complete_at: at(4),
    coverage: 'steady',
    last_run_at: at(5),
    last_run_status: 'succeeded',
    last_run_trigger: 'schedule',
    last_sync_finished_at: at(4),
  }
  const plan = { schedule: '*/15 * * * *', nextRunAt: NOW + 600_000, dueAt: null }
  return { ...jobStatus(row, { now: NOW, plan }), ...more }
}

/** What `status` says beside its lists where there is nothing to say. */
export const NOTHING_TOLD = { unusable: null, advice: [], refreshes: [], notes: [] }

/** `unusable`: why the mirror cannot be written. */
export function overview(
  jobs: readonly JobStatus[],
  more: Partial<Overview> = {},
  unusable: string | null = null,
): Overview {
  const facts = {
    ...NOTHING_TOLD,
    unusable,
    database: '/data/mirror.db',
    now: new Date(NOW).toISOString(),
    timezone: 'UTC',
    queue: null,
    waiting_until: null,
    max_age: null,
    fresh: null,
    jobs: [...jobs],
  }
  const runs = jobs.map(({ organization_id, collection }) => ({
    organization_id,
    collection,
    marks: 'sSSfs',
    seconds: 61.5,
    refresh_seconds: 0.25,
  }))
  return {
    version: '1.2.3',
    started_at: at(90),
    status: createStatus(facts, [{ pid: 1, since: at(90), running: true }]),
    runs: new Map(runs.map((one) => [jobKey(one.organization_id, one.collection), one])),
    budgets: [],
    counters: createCounters(),
    new_columns: [],
    size: { bytes: 13_000_000, walBytes: 4096, freeBytes: null },
    published: null,
    ...more,
  }
}

/** A source that is well, and counts how often it was asked. */
export function source(
  known: Overview,
  more: Partial<StatusSource> = {},
): StatusSource & { asked: { overviews: number } } {
  const asked = { overviews: 0 }
  return {
    asked,
    health: () => ({ stalled: null, unusable: null }),
    overview: () => {
      asked.overviews++
      return known
    },
    ...more,
  }
}

function counted() {
  const counters = createCounters()
  for (const status of [200, 200, 429, 429, null]) counters.request('acme', status)
  counters.run({ organization: 'acme', collection: 'orders' }, 'succeeded', {
    retries: 1,
    rateLimitWaitMs: 2500,
  })
  return counters
}

/** Everything that can be known. It is made by each test, so that defects in what makes it are met by a test. */
export const full = (): Overview =>
  overview(
    [
      job('acme', 'orders', {
        fresh_as_of: at(1),
        running: true,
        walk_percent: 44,
        waiting_until: new Date(NOW + 30_000).toISOString(),
        removals_held: 12,
        rows_missed: 3,
      }),
      job('globex', 'orders', {
        held_since: at(50),
        last_run_status: 'failed',
        error_code: 'UNAUTHORIZED',
        ...failedBy('UNAUTHORIZED'),
        overdue: true,
      }),
    ],
    {
      counters: counted(),
      size: { bytes: 13_000_000, walBytes: 4096, freeBytes: 78_000_000_000 },
      published: {
        file: '/data/published/mirror.db',
        created_at: at(3),
        bytes: 12_000_000,
      },
    },
  )
